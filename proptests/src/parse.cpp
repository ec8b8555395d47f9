// Text to programs: lines, thread blocks, documents.
#include <algorithm>
#include <fstream>
#include <sstream>

#include <granule/prop/text.hpp>

#include "lex.hpp"
#include "statement.hpp"

namespace granule::prop {
namespace {

using detail::expected;
using detail::LineError;
using detail::read_statement;
using detail::Token;
using detail::Words;

/// The state of reading a file.
class DocumentReader {
 public:
  DocumentReader(std::string_view text, std::string_view file) : text_(text), file_(file) {}

  ParseResult read() {
    if (text_.size() > kMaxTextBytes) {
      add_error({1, "expected a text of at most 64 MiB"});
      return std::move(result_);
    }
    if (text_.substr(0, 3) == "\xEF\xBB\xBF") text_.remove_prefix(3);
    std::size_t at = 0;
    while (at < text_.size() && result_.errors.size() < kMaxErrors) {
      std::size_t end = text_.find('\n', at);
      if (end == std::string_view::npos) end = text_.size();
      ++line_;
      read_line(text_.substr(at, end - at));
      at = end + 1;
    }
    if (line_ == 0) line_ = 1;
    if (!started_ && result_.errors.empty()) add_error({1, "expected `granule 1`, found nothing"});
    if (!thread_.empty() && result_.errors.empty())
      add_error({1, "expected } of thread " + thread_ + ", found the end of the file"});
    return std::move(result_);
  }

 private:
  void add_error(LineError error) {
    if (result_.errors.size() < kMaxErrors)
      result_.errors.push_back({std::string(file_), line_, error.column, std::move(error.message)});
  }

  std::string stem() const {
    std::string_view name = file_;
    const std::size_t slash = name.find_last_of('/');
    if (slash != std::string_view::npos) name.remove_prefix(slash + 1);
    const std::size_t dot = name.rfind(".granule");
    return std::string(name.substr(0, dot));
  }

  void read_line(std::string_view line) {
    Words words;
    words.list = detail::words_of(line);
    if (words.list.empty()) return;
    const Token& last = words.list.back();
    words.end_column = last.column + static_cast<std::uint32_t>(last.text.size());
    if (!started_) return read_header(words);
    if (words.list[0].text == "program") return read_program(words);
    if (words.list[0].text == "thread") return open_thread(words);
    if (words.list[0].text == "}") return close_thread(words);
    Statement statement;
    statement.line.number = line_;
    statement.thread = thread_;
    if (auto error = read_statement(line, std::move(words), statement)) {
      add_error(std::move(*error));
      return;
    }
    current().statements.push_back(std::move(statement));
  }

  void read_header(const Words& words) {
    started_ = true;
    if (words.list.size() == 2 && words.list[0].text == "granule" && words.list[1].text == "1")
      return;
    add_error(expected("`granule 1` as the first statement", words.list[0]));
  }

  void read_program(const Words& words) {
    if (!thread_.empty()) return add_error(expected("} of thread " + thread_, words.list[0]));
    if (words.list.size() != 2) return add_error(words.ended("one name of a program", 1));
    if (!result_.document.split && !result_.document.programs.empty())
      return add_error(expected("no statement before the first `program`", words.list[0]));
    result_.document.split = true;
    result_.document.programs.push_back({std::string(words.list[1].text), {}});
  }

  void open_thread(const Words& words) {
    if (!thread_.empty()) return add_error(expected("} of thread " + thread_, words.list[0]));
    if (!detail::is_symbol(words.at(1).text))
      return add_error(words.ended("the name of a thread", 1));
    if (words.at(2).text != "{" || words.list.size() != 3)
      return add_error(words.ended("{ and nothing behind it", words.at(2).text == "{" ? 3 : 2));
    thread_ = words.list[1].text;
    current();
  }

  void close_thread(const Words& words) {
    if (thread_.empty()) return add_error(expected("a statement", words.list[0]));
    if (words.list.size() != 1) return add_error(expected("} alone on its line", words.list[1]));
    thread_.clear();
  }

  Program& current() {
    auto& programs = result_.document.programs;
    if (programs.empty()) programs.push_back({stem(), {}});
    return programs.back();
  }

  std::string_view text_;
  std::string_view file_;
  ParseResult result_;
  std::uint32_t line_ = 0;
  std::string thread_;
  bool started_ = false;
};

}  // namespace

const Option* Statement::option(std::string_view key) const {
  for (const Option& found : options)
    if (found.key == key) return &found;
  return nullptr;
}

ParseResult parse(std::string_view text, std::string_view file) {
  return DocumentReader(text, file).read();
}

ParseResult parse_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  if (in) text << in.rdbuf();
  if (!in) {
    ParseResult result;
    result.errors.push_back({path, 0, 0, "expected a file that can be read"});
    return result;
  }
  return parse(text.str(), path);
}

}  // namespace granule::prop
