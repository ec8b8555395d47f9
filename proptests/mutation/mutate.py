"""Makes a copy of the core's sources that holds all mutants, one of which runs at a time.

    mutate.py --from core/src --to build-mutation/core/mutants [--list]

The copy reads GRANULE_MUTANT once; the mutant of that number is active, none without it. Beside
the copy `mutants.json` lists them: number, key (stable under edits elsewhere), file, line,
function, operator, what was there.
"""
import argparse
import json
import pathlib
import re

import cxx

# Constants and what takes their place: one that the code around could confuse with it.
CONSTANTS = {
    "true": "false",
    "false": "true",
    "CaptureMode::kRelaxed": "CaptureMode::kGlobal",
    "RecordState::kRetired": "RecordState::kParked",
    "RecordState::kParked": "RecordState::kRetired",
    "RecordState::kReaping": "RecordState::kRetired",
    "RecordState::kIdle": "RecordState::kOpen",
    "MappingState::kMapped": "MappingState::kClaimed",
    "MappingState::kClaimed": "MappingState::kMapped",
    "MappingState::kQuarantined": "MappingState::kMapped",
    "MappingState::kSuspended": "MappingState::kClaimed",
    "Placement::kAlias": "Placement::kKept",
    "Placement::kKept": "Placement::kMoved",
    "Placement::kMoved": "Placement::kKept",
    "FailureKind::kParked": "FailureKind::kUndoFailed",
    "FailureKind::kQuarantined": "FailureKind::kReleaseFailed",
    "FailureKind::kReleaseFailed": "FailureKind::kQuarantined",
    "FailureKind::kWaitSkipped": "FailureKind::kParked",
    "FailureKind::kUndoFailed": "FailureKind::kReleaseFailed",
    "ErrorCode::kOutOfMemory": "ErrorCode::kInvalidArgument",
    "ErrorCode::kInvalidArgument": "ErrorCode::kUnsupported",
    "ErrorCode::kUnsupported": "ErrorCode::kInvalidArgument",
    "ErrorCode::kOverflow": "ErrorCode::kInvalidArgument",
    "ErrorCode::kCapturing": "ErrorCode::kSuspended",
    "ErrorCode::kSuspended": "ErrorCode::kClosed",
    "ErrorCode::kClosed": "ErrorCode::kSuspended",
    "ErrorCode::kWrongResource": "ErrorCode::kInvalidArgument",
    "ErrorCode::kDriver": "ErrorCode::kUnsupported",
    "Exhausted::kDevice": "Exhausted::kAddresses",
    "Exhausted::kAddresses": "Exhausted::kDevice",
    "Exhausted::kBudget": "Exhausted::kDevice",
    "Exhausted::kPending": "Exhausted::kDevice",
    "Exhausted::kHost": "Exhausted::kDevice",
    "CaptureVerdict::kClear": "CaptureVerdict::kCaptures",
    "CaptureVerdict::kDisturbs": "CaptureVerdict::kClear",
    "CaptureVerdict::kCaptures": "CaptureVerdict::kClear",
    "Support::kUnknown": "Support::kNo",
    "Support::kYes": "Support::kNo",
    "Wish::kNo": "Wish::kIfPossible",
    "FreePolicy::kDeferred": "FreePolicy::kSynchronize",
    "StreamKind::kPerThread": "StreamKind::kLegacy",
    "StreamKind::kLegacy": "StreamKind::kPerThread",
    "UINT64_MAX": "0",
}
# What judges the mutants: weaker, it finds nothing new in a core that is right.
ORACLE = {"audit.cpp": ("Audit", "expect", "count_links", "audit_record",
                        "ResourceCore::check_invariants")}
GRANULE = "2097152"
LOGICAL = ("negate", "true", "false")
RELATIONS = {"<": "right", ">=": "right", "<=": "left", ">": "left"}
STOPS = {"&&", "||", "?", ":", ",", ";", "=", "+=", "-=", "<", ">", "<=", ">=", "==", "!=", "return",
         "&", "<<", ">>"}
HEADER = "#include <granule_mutant.hpp>\n"
SWITCH = """// Which mutant runs: the number in GRANULE_MUTANT, read once. 0 is none.
#pragma once
#include <cstdlib>

namespace granule {
inline int active_mutant() noexcept {
  static const int number = [] {
    const char* const text = std::getenv("GRANULE_MUTANT");
    return text ? std::atoi(text) : 0;
  }();
  return number;
}
inline bool mutant(int number) noexcept { return active_mutant() == number; }
}  // namespace granule
"""


class File:
    """One source with the mutants found in it. Each is text put before and behind a span."""

    def __init__(self, name, text):
        self.name, self.source = name, cxx.Source(text)
        self.mutants = []  # (operator, first, last, before, behind, function): {} is the number
        self.idle = set()  # places in that list: mutants that can make no difference
        self.function = ""

    def add(self, operator, first, last, before, behind):
        self.mutants.append((operator, first, last, before, behind, self.function))

    def find(self):
        for body, name in cxx.functions(self.source):
            if name in ORACLE.get(self.name, ()):
                continue
            self.function = name
            self.block(cxx.statements(self.source, body))
        # A comparison that is all of a condition or of an operand is mutated there already.
        logical = {mutant[1:3] for mutant in self.mutants if mutant[0] in LOGICAL}
        for index, mutant in enumerate(self.mutants):
            if mutant[0] == "equal" and mutant[1:3] in logical:
                self.idle.add(index)
        return self

    def block(self, statements):
        pairs = list(zip(statements, statements[1:]))
        while pairs:  # two swaps that overlap would spoil each other
            pairs = pairs[2:] if self.swap(*pairs[0]) else pairs[1:]
        for statement in statements:
            self.statement(statement)

    def swap(self, one, other):
        """Where both do something, and not to different things. True if there is a mutant."""
        plain = {"expression", "if", "block", "loop"}
        if one.kind not in plain or other.kind not in plain or "expression" not in (
            one.kind, other.kind
        ):
            return False
        source = self.source
        texts = [source.span(s.first, s.last) for s in (one, other)]
        if not all("(" in text for text in texts) or not self.depends(one, other):
            return False
        if one.kind != other.kind:  # a check before or behind what it does not look at
            self.idle.add(len(self.mutants))
        swapped = re.sub(r"//[^\n]*", "", texts[1] + " " + texts[0])
        self.add("swap", one.first, other.last, "if (granule::mutant({})) {{ " + brace(swapped) +
                 " }} else {{ ", " }}")
        return True

    def depends(self, one, other):
        """False where the order plainly makes no difference: two assignments to different things."""
        targets = []
        for statement in (one, other):
            if statement.kind != "expression":
                return True
            text = self.source.span(statement.first, statement.last)
            match = re.match(r"(?:\+\+|--)?([\w.>\-*\[\]]+?)(?: [-+]?= |;)", text)
            if not match:
                return True
            targets.append((match.group(1), text))
        (left, first), (right, second) = targets
        return left in second or right in first

    def statement(self, statement):
        source, first, last = self.source, statement.first, statement.last
        for condition in statement.conditions:
            self.condition(*condition)
        if statement.kind == "expression" or statement.kind == "jump":
            if source.at(first) != ";":
                self.add("drop", first, last, "{{ if (!granule::mutant({})) {{ ", " }} }}")
        if statement.kind == "return" and source.at(first + 1) == ";":
            self.add("drop", first, last, "{{ if (!granule::mutant({})) ", " }}")
        if statement.kind in ("expression", "declaration", "return"):
            before = len(self.mutants)
            if source.at(first) not in ("static", "constexpr"):
                self.expression(first, last - 1)
            if statement.kind == "declaration" and self.is_placeholder(first, last):
                self.idle.update(i for i in range(before, len(self.mutants))
                                 if self.mutants[i][0] == "constant")
        elif statement.kind == "loop":
            paren = first + 1
            self.expression(paren + 1, source.partner[paren] - 1)
        elif statement.kind == "if":
            self.expression(first + 2, source.partner[first + 1] - 1)
        for block in statement.blocks:
            self.block(block)

    def is_placeholder(self, first, last):
        """A variable with a constant to begin with, or a driver call with room for its answer."""
        text = self.source.span(first, last)
        return re.fullmatch(r"[\w:<>]+\*? \w+ = [\w:]+;", text) or re.match(
            r"[\w:]+ \w+\{.*\};", text, re.S) is not None

    def condition(self, first, last, declared=None):
        if declared:
            self.add("negate", first, last, "", "; granule::mutant({}) != !!" + declared)
        else:
            self.add("negate", first, last, "granule::mutant({}) != !!(", ")")

    def expression(self, first, last):
        source = self.source
        index = first
        while index <= last:
            token = source.tokens[index]
            if token.text == "{" and source.at(index - 1) == ")" or (
                token.text == "{" and source.at(index - 2) == "->"
            ):
                opener = index - 1 if source.at(index - 1) == ")" else index - 3
                if source.at(source.partner[opener] - 1) == "]":  # a lambda
                    self.block(cxx.statements(source, index))
                    index = source.partner[index] + 1
                    continue
            if token.kind == "mark" and index > first and source.spaced(index):
                self.operator(index, first, last)
            if token.kind in ("number", "name"):
                self.constant(index)
            index += 1

    def operator(self, index, first, last):
        source, text = self.source, self.source.at(index)
        if text in ("&&", "||"):
            stops = {"||", "?", ":", ",", ";", "=", "return"}
            if text == "||":
                stops = {"?", ":", ",", ";", "=", "return"}
            for operand in (self.operand(index, -1, first, stops | {"&&", "||"}),
                            self.operand(index, 1, last, stops | {"&&", "||"} if text == "&&"
                                         else stops)):
                if text == "&&":
                    self.add("true", *operand, "(granule::mutant({}) || (", "))")
                else:
                    self.add("false", *operand, "(!granule::mutant({}) && (", "))")
        elif text in RELATIONS:
            side = RELATIONS[text]
            operand = self.operand(index, 1 if side == "right" else -1,
                                   last if side == "right" else first, STOPS)
            self.add("bound", *operand, "((", ") + (granule::mutant({}) ? 1 : 0))")
        elif text in ("==", "!="):
            left = self.operand(index, -1, first, STOPS)
            right = self.operand(index, 1, last, STOPS)
            self.add("equal", left[0], right[1], "(granule::mutant({}) != (", "))")
        elif text in ("+", "-"):
            operand = self.operand(index, 1, last, STOPS | {"+", "-"})
            spelled = source.span(max(first, index - 3), min(last, index + 3))
            if '"' not in spelled:
                self.add("granule", *operand, "((", ") + (granule::mutant({}) ? " + GRANULE +
                         " : 0))")
        elif text == "?":
            left = self.operand(index, -1, first, {",", ";", "=", "return", "?", ":", "+=", "-="})
            self.condition(*left)

    def operand(self, index, step, limit, stops):
        """The token span beside the operator, up to a bracket or an operator in `stops`."""
        source, edge = self.source, index
        while edge != limit:
            following = source.at(edge + step)
            if following in stops and (source.spaced(edge + step) or following in ",;:return"):
                break
            if following in ("(", "[", "{") and step == 1 or following in (")", "]", "}") and (
                step == -1
            ):
                edge = source.partner[edge + step]
                continue
            if following in (")", "]", "}", "(", "[", "{"):
                break
            edge += step
        return (edge, index - 1) if step == -1 else (index + 1, edge)

    def constant(self, index):
        source, text = self.source, self.source.at(index)
        if source.at(index + 1) == "::" or source.at(index - 1) in ("<", "[") and (
            not source.spaced(index - 1)
        ):
            return
        if source.tokens[index].kind == "number":
            if re.fullmatch(r"\d+u?", text):
                self.add("constant", index, index, "(granule::mutant({}) ? " + text + " + 1 : ",
                         ")")
            return
        first = index
        if source.at(index - 1) == "::":
            first, text = index - 2, source.at(index - 2) + "::" + text
        other = CONSTANTS.get(text)
        if other and source.at(first - 1) != "case":
            self.add("constant", first, index, "(granule::mutant({}) ? " + other + " : ", ")")


def brace(text):
    return text.replace("{", "{{").replace("}", "}}")


def render(file, numbers):
    """The source with its mutants: numbers[i] is that of mutant i, None leaves it out."""
    source = file.source
    edits = []
    for order, (mutant, number) in enumerate(zip(file.mutants, numbers)):
        if number is None:
            continue
        _, first, last, before, behind, _ = mutant
        start, end = source.tokens[first].start, source.tokens[last].end
        # What closes at a place comes before what opens there; of two that open, the longer first.
        edits.append((start, 1, -end, order, before.format(number)))
        edits.append((end, 0, -start, -order, behind.format(number)))
    pieces, done = [], 0
    for where, _, _, _, text in sorted(edits):
        pieces += [source.text[done:where], text]
        done = where
    return HEADER + "".join(pieces) + source.text[done:]


def describe(file, mutant, count):
    operator, first, last, _, _, function = mutant
    source = file.source
    text = re.sub(r"\s+", " ", source.span(first, last))
    if len(text) > 100:
        text = text[:70] + " ... " + text[-25:]
    key = "%s | %s | %s | %s" % (file.name, function, operator, text)
    count[key] = count.get(key, 0) + 1
    if count[key] > 1:
        key += " | %d" % count[key]
    return {"key": key, "file": file.name, "line": source.line(first), "operator": operator,
            "text": text, "function": function}


def make(folder):
    """All files of the folder with their mutants, and the list of those."""
    files, mutants, count = [], [], {}
    for path in sorted(pathlib.Path(folder).glob("*.[ch]pp")):
        file = File(path.name, path.read_text()).find()
        numbers = []
        for index, mutant in enumerate(file.mutants):
            described = describe(file, mutant, count)
            if index in file.idle:
                numbers.append(None)
                continue
            described["number"] = len(mutants) + 1
            numbers.append(described["number"])
            mutants.append(described)
        files.append((file, numbers))
    return files, mutants


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--from", dest="folder", required=True, help="the sources")
    arguments.add_argument("--to", required=True, help="where the copy goes")
    options = arguments.parse_args()
    files, mutants = make(options.folder)
    target = pathlib.Path(options.to)
    target.mkdir(parents=True, exist_ok=True)
    for file, numbers in files:
        write(target / file.name, render(file, numbers))
    write(target / "granule_mutant.hpp", SWITCH)
    write(target / "mutants.json", json.dumps(mutants, indent=0) + "\n")
    print("%d mutants in %d files" % (len(mutants), len(files)))


def write(path, text):
    """Only if it differs, so that nothing is compiled in vain."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


if __name__ == "__main__":
    main()
