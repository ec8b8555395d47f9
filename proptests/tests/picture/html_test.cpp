// The page: every statement with what it gave and its driver calls, the failing one marked, the
// last picture in sight without a script.
#include "told.hpp"

namespace granule::prop {
namespace {

const std::string kMoved =
    "stream s\nresource r vmm\na = allocate r 1g on s\ndecoy d after a 1g\nb = grow a 2g\n"
    "close a\nclose b\n";

std::string page_of(const Told& t) { return html_of({t.story}, "a <title>"); }

TEST(Html, HoldsEveryStatementWithWhatItGave) {
  const Told t = told(kMoved);
  const std::string page = page_of(t);
  EXPECT_EQ(xml_fault(page), "");
  for (const Statement& s : t.program->statements)
    EXPECT_NE(page.find(R"(<span class="statement">)" + to_text(s) + "</span>"), std::string::npos)
        << to_text(s);
  EXPECT_NE(page.find("&#8594; moved"), std::string::npos);
  EXPECT_NE(page.find("a &lt;title&gt;"), std::string::npos);
}

TEST(Html, ShowsOnlyTheLastPictureWithoutAScript) {
  const std::string page = page_of(told(kMoved));
  EXPECT_GE(count_of(page, "<figure"), 4u);
  EXPECT_EQ(count_of(page, "<figure"), count_of(page, R"(" hidden>)") + 1);
  EXPECT_EQ(count_of(page, R"( aria-current="step">)"), 1u);
}

TEST(Html, NeedsNothingFromElsewhere) {
  const std::string page = page_of(told(kMoved));
  for (const char* part : {" src=", "<link", "@import", "url("})
    EXPECT_EQ(page.find(part), std::string::npos) << part;
}

TEST(Html, ListsTheDriverCallsOfAStatement) {
  const Told t = told(
      "resource r vmm\nfail cuMemMap with CUDA_ERROR_UNKNOWN\na = allocate r 1g\n"
      "v = cuMemAddressReserve 1g\n");
  const std::string page = page_of(t);
  const std::size_t statement = page.find(">a = allocate r 1g<");
  ASSERT_NE(statement, std::string::npos);
  const std::string calls = page.substr(statement, page.find("</details>", statement) - statement);
  EXPECT_NE(calls.find("<li>cuMemCreate"), std::string::npos) << calls;
  EXPECT_NE(calls.find(R"(<li class="refused">cuMemMap)"), std::string::npos) << calls;
  EXPECT_NE(calls.find("CUDA_ERROR_UNKNOWN"), std::string::npos) << calls;
  EXPECT_NE(page.find("(the program)"), std::string::npos);
}

TEST(Html, MarksTheFailingStatementAndWhatNeverRan) {
  const std::string page =
      page_of(told("resource r vmm\na = allocate r 1g\nexpect mappings 7\nclose a\n"));
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_EQ(count_of(page, R"(class="failed")"), 1u);
  const std::size_t failed = page.find(R"(class="failed")");
  EXPECT_EQ(page.find("expect mappings 7", failed), page.find("expect mappings", failed));
  EXPECT_NE(page.find("here it fails"), std::string::npos);
  EXPECT_NE(page.find("not run"), std::string::npos);
}

TEST(Html, WhatIsLeftOverFailsAtTheEnd) {
  Told failed = told("v = cuMemAddressReserve 1g\n");
  Failure failure;
  failure.statement = failed.program->statements.size();
  failure.message = "left over";
  failed.story.report.failure = failure;
  const std::string page = page_of(failed);
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_NE(page.find("the end of the program"), std::string::npos);
  EXPECT_EQ(count_of(page, R"( aria-current="step">)"), 1u);
}

TEST(Html, ARepeatIsOneStep) {
  const Told t = told("resource r vmm\nrepeat 0..9 b@ = allocate r 1g\n");
  ASSERT_EQ(t.story.steps.size(), 2u);
  EXPECT_EQ(t.story.steps[1].times, 10u);
  EXPECT_EQ(t.end().rows.size(), 10u);
  EXPECT_NE(page_of(t).find("10 times, the last"), std::string::npos);
}

TEST(Html, TheSameProgramGivesTheSameBytes) {
  const std::string text =
      "stream s\nresource r vmm\na = allocate r 1g on s\nfill a 0x11 on s\n"
      "suspend a backup\nresume a\ncheck a 0x11\n";
  EXPECT_EQ(page_of(told(text)), page_of(told(text)));
}

TEST(Html, EachStoryHasASection) {
  const Told a = told(kMoved);
  const Told b = told("needs memory=4TiB\nresource r vmm\n");
  const std::string page = html_of({a.story, b.story}, "two");
  EXPECT_EQ(xml_fault(page), "");
  EXPECT_EQ(count_of(page, "<section"), 2u);
  EXPECT_NE(page.find("not run: it needs memory=4TiB"), std::string::npos);
}

TEST(Html, OfALongProgramTheLastPicturesStay) {
  std::string text;
  for (std::size_t i = 0; i < 2 * kMostPictures + 100; ++i)
    text += "v" + std::to_string(i) + " = cuMemAddressReserve 1g\n";
  const Told t = told(text);
  EXPECT_EQ(t.story.pictures.size(), kMostPictures);
  EXPECT_EQ(t.story.steps.front().picture, 0u);
  EXPECT_EQ(t.story.steps.back().picture, kMostPictures - 1);
}

}  // namespace
}  // namespace granule::prop
