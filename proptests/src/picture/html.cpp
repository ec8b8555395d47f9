// The page: a section a story, its statements on the left and its pictures on the right.
#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <variant>
#include <vector>

#include <granule/backends/trace.hpp>
#include <granule/prop/picture.hpp>
#include <granule/prop/text.hpp>
#include <granule/prop/xml.hpp>

#include "page.hpp"
#include "svg.hpp"

namespace granule::prop {
namespace {

/// Sets a member that is a pointer of this process to null and notes its name.
template <class C, class F>
void clear_pointer(C& call, const F& field, std::vector<std::string_view>& names) {
  auto& value = call.*(field.member);
  if constexpr (std::is_pointer_v<std::decay_t<decltype(value)>>) {
    value = nullptr;
    names.push_back(field.name);
  }
}

/// Pointers of this process differ from run to run: what is left of them is a word.
std::string call_text(const record::Entry& entry) {
  Call call = entry.call;
  std::vector<std::string_view> names;
  std::visit(
      [&names](auto& one) {
        std::apply([&](const auto&... field) { (clear_pointer(one, field, names), ...); },
                   std::decay_t<decltype(one)>::fields());
      },
      call);
  std::string text = trace::to_text(call, entry.status);
  for (const std::string_view name : names) {
    const std::size_t found = text.find(" " + std::string(name) + "=");
    if (found == std::string::npos) continue;
    const std::size_t begin = found + name.size() + 2;
    text.replace(begin, std::min(text.find(' ', begin), text.size()) - begin, "host");
  }
  return text;
}

class Section {
 public:
  Section(const Story& story, std::size_t number)
      : story_(story), prefix_("p" + std::to_string(number + 1)) {}

  std::string text() {
    out_ = R"(<section id=")" + prefix_ + "\">\n<h2>program " + xml_escaped(story_.program->name) +
           "</h2>\n";
    if (story_.report.status == RunStatus::kUnmet)
      out_ += R"(<p class="hint">not run: it needs )" + xml_escaped(story_.report.unmet) + "</p>\n";
    if (story_.report.failure)
      out_ += R"(<p class="failure">)" +
              xml_escaped(describe(*story_.program, *story_.report.failure)) + "</p>\n";
    if (story_.dropped_pictures != 0)
      out_ += R"(<p class="hint">A long program: the first )" +
              std::to_string(story_.dropped_pictures) +
              " pictures were dropped; their statements show the first one that was kept.</p>\n";
    out_ += "<div class=\"columns\">\n<ol class=\"steps\">\n";
    for (std::size_t i = 0; i < story_.steps.size(); ++i) add_step(i);
    add_never_run();
    if (story_.failed_at_the_end()) add_end();
    out_ += "</ol>\n<div class=\"pictures\">\n<h3 class=\"when\">" + xml_escaped(when(selected())) +
            "</h3>\n";
    for (std::size_t i = 0; i < story_.pictures.size(); ++i)
      out_ += R"(<figure id=")" + picture_id(i) + R"(")" + (i == first_shown() ? "" : " hidden") +
              ">\n" + picture::svg_for_page(story_.pictures[i]) + "</figure>\n";
    out_ += "</div>\n</div>\n</section>\n";
    return std::move(out_);
  }

 private:
  /// What is selected at first: the step that failed, the end if that failed, or the last step.
  std::size_t selected() const {
    if (story_.failed_at_the_end()) return story_.steps.size();
    for (std::size_t i = 0; i < story_.steps.size(); ++i)
      if (story_.failed_at(story_.steps[i])) return i;
    return story_.steps.empty() ? 0 : story_.steps.size() - 1;
  }
  std::size_t first_shown() const {
    return selected() < story_.steps.size() ? story_.steps[selected()].picture
                                            : story_.pictures.size() - 1;
  }
  std::string picture_id(std::size_t number) const {
    return prefix_ + "-picture-" + std::to_string(number + 1);
  }
  /// Of the step of that number, or of the end.
  std::string when(std::size_t step) const {
    return picture::when_text(story_, step < story_.steps.size() ? &story_.steps[step] : nullptr);
  }

  void open_item(std::size_t step, std::size_t picture, const std::string& type, bool selected) {
    out_ += R"(<li id=")" + prefix_ + "-" + std::to_string(step + 1) + R"(")" +
            (type.empty() ? "" : R"( class=")" + type + R"(")");
    if (picture < story_.pictures.size())
      out_ += R"( data-picture=")" + picture_id(picture) + R"(" data-when=")" +
              xml_escaped(when(step)) + R"(")";
    out_ += selected ? R"( aria-current="step">)" : ">";
  }

  void add_statement(const Statement& s) {
    out_ += R"(<span class="line">)" + std::to_string(s.line.number) + "</span>";
    if (!s.thread.empty()) out_ += R"(<span class="thread">)" + xml_escaped(s.thread) + ":</span> ";
    out_ += R"(<span class="statement">)" + xml_escaped(to_text(s)) + "</span>";
  }

  void add_step(std::size_t number) {
    const StoryStep& step = story_.steps[number];
    const bool failed = story_.failed_at(step);
    open_item(number, step.picture,
              failed         ? "failed"
              : step.skipped ? "skipped"
                             : "",
              number == selected());
    add_statement(story_.program->statements[step.statement]);
    if (failed) out_ += R"( <span class="mark">&#8592; here it fails</span>)";
    out_ += R"( <span class="gives">)";
    if (step.times > 1) out_ += std::to_string(step.times) + " times, the last ";
    out_ += "&#8594; " + xml_escaped(step.reply) + "</span>";
    if (failed)
      out_ += R"(<span class="why">)" + xml_escaped(story_.report.failure->message) + "</span>";
    add_calls(step);
    out_ += "</li>\n";
  }

  void add_calls(const StoryStep& step) {
    if (step.calls.empty()) return;
    const auto is_refused = [&](std::size_t number) {
      const DriverStatus status = story_.calls[number].status;
      return status != DriverStatus::kSuccess && status != DriverStatus::kNotReady;
    };
    const auto refused = std::count_if(step.calls.begin(), step.calls.end(), is_refused);
    out_ += "<details><summary>" + std::to_string(step.calls.size()) + " driver call" +
            (step.calls.size() == 1 ? "" : "s");
    if (refused != 0) out_ += ", " + std::to_string(refused) + " refused";
    out_ += "</summary><ol>";
    constexpr std::size_t kMostCalls = 200;
    for (std::size_t i = 0; i < step.calls.size() && i < kMostCalls; ++i) {
      const record::Entry& entry = story_.calls[step.calls[i]];
      out_ += std::string("<li") + (is_refused(step.calls[i]) ? R"( class="refused">)" : ">") +
              xml_escaped(call_text(entry));
      if (entry.origin == CallOrigin::kProgram) out_ += R"( <span class="by">(the program)</span>)";
      out_ += "</li>";
    }
    out_ += "</ol>";
    if (step.calls.size() > kMostCalls)
      out_ += "and " + std::to_string(step.calls.size() - kMostCalls) + " more";
    out_ += "</details>";
  }

  void add_never_run() {
    std::set<std::size_t> ran;
    for (const StoryStep& step : story_.steps) ran.insert(step.statement);
    for (std::size_t i = 0; i < story_.program->statements.size(); ++i) {
      if (ran.count(i) != 0) continue;
      out_ += R"(<li class="never">)";
      add_statement(story_.program->statements[i]);
      out_ += "<span class=\"gives\"> not run</span></li>\n";
    }
  }

  void add_end() {
    open_item(story_.steps.size(), story_.pictures.size() - 1, "failed", true);
    out_ += R"(the end of the program <span class="mark">&#8592; here it fails</span>)"
            R"(<span class="why">)" +
            xml_escaped(story_.report.failure->message) + "</span></li>\n";
  }

  const Story& story_;
  const std::string prefix_;
  std::string out_;
};

}  // namespace

std::string html_of(const std::vector<Story>& stories, std::string_view title) {
  std::string page =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n<title>" +
      xml_escaped(title) + "</title>\n<style>" + std::string(picture::picture_style()) +
      std::string(picture::kPageStyle) + "</style>\n</head>\n<body>\n<header>\n<h1>" +
      xml_escaped(title) +
      "</h1>\n<p class=\"hint\">Click a statement, or use the arrow keys, Home and "
      "End. The picture is the address space after it. Threads that run at once are "
      "in the order in which their statements ended.</p>\n</header>\n";
  for (std::size_t i = 0; i < stories.size(); ++i) page += Section(stories[i], i).text();
  return page + "<script>" + std::string(picture::kPageScript) + "</script>\n</body>\n</html>\n";
}

}  // namespace granule::prop
