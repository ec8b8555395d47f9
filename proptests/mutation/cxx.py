"""Tokens and statements of the C++ that this project writes: enough to find what can be mutated.

No general parser: it relies on what clang-format and core/docs/STYLE.md make sure of (blanks round
binary operators, no macros in function bodies, declarations that begin with a type).
"""
import re

TOKEN = re.compile(
    r"""
    (?P<blank>\s+) | (?P<comment>//[^\n]*|/\*.*?\*/) | (?P<directive>\#(?:[^\n\\]|\\\n|\\.)*)
  | (?P<string>"(?:[^"\\\n]|\\.)*") | (?P<char>'(?:[^'\\\n]|\\.)*')
  | (?P<number>\d[\w.']*) | (?P<name>[A-Za-z_]\w*)
  | (?P<mark><=>|->\*|\.\.\.|::|->|\+\+|--|<<=|<<|\+=|-=|\*=|/=|%=|&=|\|=|==|!=|<=|>=|&&|\|\||.)
    """,
    re.X | re.S,
)
CLOSER = {"(": ")", "[": "]", "{": "}"}


class Token:
    """A token: its text, its kind (name, number, mark, ...) and where it lies in the source."""

    __slots__ = ("text", "kind", "start", "end")

    def __init__(self, text, kind, start, end):
        self.text, self.kind, self.start, self.end = text, kind, start, end


class Statement:
    """A statement: kind, first and last token (inclusive), the statements in it, its conditions.

    kind is expression, declaration, return, jump, block, if, loop or other. A condition is a pair
    of token indices, or a triple with the name declared there.
    """

    def __init__(self, kind, first, last):
        self.kind, self.first, self.last = kind, first, last
        self.blocks = []  # lists of statements, in order
        self.conditions = []


class Source:
    """A file as tokens, with the partner of each bracket."""

    def __init__(self, text):
        self.text = text
        self.tokens = []
        for match in TOKEN.finditer(text):
            if match.lastgroup not in ("blank", "comment", "directive"):
                self.tokens.append(
                    Token(match.group(), match.lastgroup, match.start(), match.end())
                )
        self.partner = {}
        open_brackets = []
        for index, token in enumerate(self.tokens):
            if token.kind != "mark":
                continue
            if token.text in CLOSER:
                open_brackets.append(index)
            elif token.text in ")]}":
                opener = open_brackets.pop()
                assert CLOSER[self.tokens[opener].text] == token.text, token.start
                self.partner[opener] = index
                self.partner[index] = opener

    def at(self, index):
        return self.tokens[index].text if 0 <= index < len(self.tokens) else ""

    def span(self, first, last):
        """The source from token `first` to token `last`, both included."""
        return self.text[self.tokens[first].start : self.tokens[last].end]

    def spaced(self, index):
        """Blanks on both sides: a binary operator, no template bracket and no sign."""
        token = self.tokens[index]
        return self.text[token.start - 1] in " \n" and self.text[token.end] in " \n"

    def line(self, index):
        return self.text.count("\n", 0, self.tokens[index].start) + 1


def functions(source):
    """The bodies of all functions: (index of `{`, name). Those of constexpr ones are left out."""
    found = []
    head, index = 0, 0
    while index < len(source.tokens):
        text = source.at(index)
        if text in ("(", "["):
            index = source.partner[index] + 1
        elif text == "{":
            words = [source.at(i) for i in range(head, index)]
            if "namespace" in words or ("(" not in words and words and
                                        {"struct", "class", "union"} & set(words)):
                index += 1
                head = index
            elif source.at(index - 1) in (")", "const", "noexcept", "override"):
                if "constexpr" not in words:
                    found.append((index, name_before(source, head, index)))
                index = source.partner[index] + 1
                head = index
            else:  # an enumeration or an initializer
                index = source.partner[index] + 1
        elif text in (";", "}"):
            index += 1
            head = index
        elif text == ":" and source.at(index - 1) in ("public", "private", "protected"):
            index += 1
            head = index
        else:
            index += 1
    return found


def name_before(source, head, body):
    """The name of the function whose head is [head, body)."""
    for index in range(head, body):
        if source.at(index) == "(":
            first = index - 1
            while first - 2 >= head and source.at(first - 1) == "::":
                first -= 2
            return source.span(first, index - 1).replace("\n", " ")
    return "?"


def statements(source, body):
    """The statements in the block whose `{` is token `body`."""
    found, index = [], body + 1
    while index < source.partner[body]:
        statement = parse(source, index)
        found.append(statement)
        index = statement.last + 1
    return found


def parse(source, index):
    text = source.at(index)
    if text == "{":
        block = Statement("block", index, source.partner[index])
        block.blocks.append(statements(source, index))
        return block
    if text == "if":
        return parse_if(source, index)
    if text in ("while", "for", "switch"):
        paren = index + 1
        inner = parse(source, source.partner[paren] + 1)
        loop = Statement("loop" if text != "switch" else "other", index, inner.last)
        loop.blocks.append(inner.blocks[0] if inner.kind == "block" else [inner])
        if text == "while":
            loop.conditions.append((paren + 1, source.partner[paren] - 1))
        elif text == "for":
            parts = split_at(source, paren, ";")
            if len(parts) == 3 and parts[1][0] <= parts[1][1]:
                loop.conditions.append(parts[1])
        return loop
    if text == "try":
        inner = parse(source, index + 1)
        last = inner.last
        blocks = [inner.blocks[0]]
        while source.at(last + 1) == "catch":
            handler = parse(source, source.partner[last + 2] + 1)
            blocks.append(handler.blocks[0])
            last = handler.last
        whole = Statement("other", index, last)
        whole.blocks = blocks
        return whole
    if text in ("case", "default"):
        while source.at(index) != ":":
            index += 1
        return Statement("other", index, index)
    last = end_of(source, index)
    if text == "return":
        return Statement("return", index, last)
    if text in ("break", "continue"):
        return Statement("jump", index, last)
    return Statement("declaration" if declares(source, index) else "expression", index, last)


def parse_if(source, index):
    paren = index + 1
    if source.at(paren) == "constexpr":
        paren += 1
    close = source.partner[paren]
    then = parse(source, close + 1)
    whole = Statement("if", index, then.last)
    whole.blocks.append(then.blocks[0] if then.kind == "block" else [then])
    if source.at(then.last + 1) == "else":
        other = parse(source, then.last + 2)
        whole.blocks.append(other.blocks[0] if other.kind == "block" else [other])
        whole.last = other.last
    first, last = split_at(source, paren, ";")[-1]
    if source.at(index + 1) != "constexpr":
        whole.conditions.append((first, last) + declared_name(source, first, last))
    return whole


def declared_name(source, first, last):
    """(name,) if the condition is a declaration such as `Record* idle = take()`."""
    if not declares(source, first):
        return ()
    for index in range(first, last):
        if source.at(index) == "=":
            return (source.at(index - 1),)
    return ()


def end_of(source, index):
    while source.at(index) != ";":
        index = source.partner[index] + 1 if source.at(index) in CLOSER else index + 1
    return index


def split_at(source, opener, mark):
    """The parts between the brackets, divided at each `mark` of that depth: pairs of indices."""
    parts, first, index = [], opener + 1, opener + 1
    close = source.partner[opener]
    while index < close:
        if source.at(index) == mark:
            parts.append((first, index - 1))
            first = index + 1
        index = source.partner[index] + 1 if source.at(index) in CLOSER else index + 1
    parts.append((first, close - 1))
    return parts


def declares(source, index):
    """Whether the statement at the token declares something."""
    text = source.at(index)
    if text in ("const", "auto", "static", "using", "struct", "typename", "constexpr", "["):
        return True
    if source.tokens[index].kind != "name":
        return False
    index += 1
    while True:  # the rest of a type
        text = source.at(index)
        if text == "::":
            index += 2
        elif text == "<" and not source.spaced(index):
            depth = 0
            while True:
                depth += {"<": 1, ">": -1}.get(source.at(index), 0)
                index += 1
                if depth == 0:
                    break
        elif text in ("*", "&", "&&", "const"):
            index += 1
        else:
            break
    return source.tokens[index].kind == "name" and source.tokens[index - 1].kind != "mark" or (
        source.tokens[index].kind == "name"
        and source.at(index - 1) in (">", "*", "&", "&&")
        and not source.spaced(index - 1)
    )
