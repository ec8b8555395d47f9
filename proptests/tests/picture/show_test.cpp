// granule show as a command: where pictures and pages go, what it refuses, exit codes.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

namespace {

struct Ran {
  int exit_code = 0;
  std::string output;  // stdout; with 2>&1 in the arguments stderr too
};

Ran show(const std::string& arguments) {
  Ran ran;
  const std::string command =
      GRANULE_COMMAND " show " GRANULE_TEST_PROGRAMS "/two.granule " + arguments;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 4096> part{};
  while (const std::size_t read = std::fread(part.data(), 1, part.size(), pipe))
    ran.output.append(part.data(), read);
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

bool has(const Ran& ran, const std::string& text) {
  return ran.output.find(text) != std::string::npos;
}

std::string file(const std::string& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

TEST(Show, WithoutAFilePrintsProgramAndDrawing) {
  const Ran ran = show("--only moves");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_TRUE(has(ran, "AAB.")) << ran.output;
  EXPECT_TRUE(has(ran, "A +0g 2g a, b")) << ran.output;
}

TEST(Show, AFailureIsExitCode42InEveryForm) {
  for (const char* form : {"", "--svg -", "--html -", "--c -"})
    EXPECT_EQ(show("--only fails " + std::string(form)).exit_code, 42) << form;
  EXPECT_TRUE(has(show("--only fails"), "<- here"));
}

TEST(Show, ADashIsTheStandardOutputAndNothingElseIsThere) {
  const Ran svg = show("--only moves --svg -");
  EXPECT_EQ(svg.exit_code, 0);
  EXPECT_EQ(svg.output.rfind("<svg ", 0), 0u) << svg.output;
  const Ran html = show("--html -");
  EXPECT_EQ(html.output.rfind("<!DOCTYPE html>", 0), 0u) << html.output.substr(0, 300);
  EXPECT_TRUE(has(html, "program moves") && has(html, "program fails"));
}

TEST(Show, AllThreeFilesAreWrittenWhenAllAreAskedFor) {
  const std::string base = testing::TempDir() + "granule-show";
  const Ran ran =
      show("--only moves --svg " + base + ".svg --html " + base + ".html --c " + base + ".c");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_EQ(ran.output, "");
  EXPECT_EQ(file(base + ".svg"), show("--only moves --svg -").output);
  EXPECT_EQ(file(base + ".html"), show("--only moves --html -").output);
  EXPECT_NE(file(base + ".c").find("cuMemMap"), std::string::npos);
  EXPECT_EQ(file(base + ".c"), show("--only moves --c -").output);
}

TEST(Show, WhatCannotBeDoneIsSaidAndNothingIsWritten) {
  const Ran several = show("--svg - 2>&1");
  EXPECT_EQ(several.exit_code, 2);
  EXPECT_TRUE(has(several, "--only")) << several.output;
  EXPECT_EQ(show("--c - 2>/dev/null").exit_code, 2);
  const Ran unknown = show("--only nothing --svg - 2>&1");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_TRUE(has(unknown, "no program of the name nothing")) << unknown.output;
  const Ran both = show("--only moves --svg - --html - 2>&1");
  EXPECT_EQ(both.exit_code, 2);
  EXPECT_TRUE(has(both, "standard output")) << both.output;
  const Ran nowhere = show("--only moves --svg /nonexistent/x.svg 2>&1");
  EXPECT_EQ(nowhere.exit_code, 2);
  EXPECT_TRUE(has(nowhere, "could not be written")) << nowhere.output;
}

}  // namespace
