// The text format: round trips, error messages, and a fuzz of the parser over the shipped programs.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include <granule/prop/rng.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

std::vector<std::string> shipped_texts() {
  std::vector<std::string> files;
  for (const char* folder : {GRANULE_PROGRAMS, GRANULE_CONFORMANCE})
    for (const auto& entry : std::filesystem::directory_iterator(folder))
      if (entry.path().extension() == ".granule") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  std::vector<std::string> texts;
  for (const std::string& file : files) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    texts.push_back(text.str());
  }
  return texts;
}

std::string only_error(std::string_view text) {
  const ParseResult result = parse(text, "f.granule");
  return result.errors.size() == 1 ? to_text(result.errors[0])
                                   : std::to_string(result.errors.size()) + " errors";
}

TEST(Text, EveryShippedProgramParsesAndComesBack) {
  const auto texts = shipped_texts();
  ASSERT_GT(texts.size(), 100u);
  for (const std::string& text : texts) {
    const ParseResult first = parse(text, "first");
    ASSERT_TRUE(first.ok()) << to_text(first.errors[0]);
    const ParseResult second = parse(to_text(first.document), "first");
    ASSERT_TRUE(second.ok()) << to_text(second.errors[0]);
    EXPECT_EQ(first.document, second.document);
  }
}

TEST(Text, SizesKeepTheirTerms) {
  SizeContext context;
  context.free_at_start = std::uint64_t{10} << 30;
  const auto evaluate = [&](const std::string& spelled) {
    const auto result = parse("granule 1\nexpect free " + spelled + "\n", "f");
    EXPECT_TRUE(result.ok()) << spelled;
    if (!result.ok()) return std::uint64_t{0};
    const auto* size = result.document.programs[0].statements[0].operand<Size>(0);
    EXPECT_EQ(to_text(*size), spelled);
    return size->evaluate(context);
  };
  EXPECT_EQ(evaluate("2g+1"), (4u << 20) + 1);
  EXPECT_EQ(evaluate("3g-1B"), (6u << 20) - 1);
  EXPECT_EQ(evaluate("2^60"), std::uint64_t{1} << 60);
  EXPECT_EQ(evaluate("max"), UINT64_MAX);
  EXPECT_EQ(evaluate("-6MiB"), 0 - (std::uint64_t{6} << 20));
  EXPECT_EQ(evaluate("100%-8GiB"), std::uint64_t{2} << 30);
  EXPECT_EQ(evaluate("1TiB"), std::uint64_t{1} << 40);
}

TEST(Text, ErrorsNameThePlaceAndWhatWasExpected) {
  EXPECT_EQ(only_error(""), "f.granule:1:1: expected `granule 1`, found nothing");
  EXPECT_EQ(only_error("granule 2\n"),
            "f.granule:1:1: expected `granule 1` as the first statement, found `granule`");
  EXPECT_EQ(only_error("granule 1\nfrobnicate a\n"),
            "f.granule:2:1: expected a statement, found `frobnicate`");
  EXPECT_EQ(only_error("granule 1\n  a = allocate r 2x\n"),
            "f.granule:2:19: expected +, - or the end of the size, found `2x`");
  EXPECT_EQ(only_error("granule 1\ncuMemMap v 2g\n"),
            "f.granule:2:14: expected NAME, NAME+OFFSET or a number, found the end of the "
            "statement");
  EXPECT_EQ(only_error("granule 1\nresource r vmm frob=1\n").substr(0, 34),
            "f.granule:2:16: expected one of lo");
  EXPECT_EQ(only_error("granule 1\nstream s sometimes\n"),
            "f.granule:2:10: expected nonblocking|blocking|legacy|per_thread, found `sometimes`");
  EXPECT_EQ(only_error("granule 1\nallocate r 1g\n"),
            "f.granule:2:1: expected NAME = in front of allocate, found `allocate`");
  EXPECT_EQ(only_error("granule 1\nthread t {\nsync\n"),
            "f.granule:3:1: expected } of thread t, found the end of the file");
  EXPECT_EQ(only_error("granule 1\nclose a => error frob\n"),
            "f.granule:2:18: expected an error name (out_of_memory, invalid_argument, ..., "
            "driver:CODE) behind =>");
}

TEST(Text, ThreadsRepeatsAndHostFunctionsComeBack) {
  const std::string text =
      "granule 1\n"
      "stream s\n"
      "thread t {\n"
      "  context none\n"
      "}\n"
      "thread u {\n"
      "  sync s => would_block|ok\n"
      "}\n"
      "repeat 0..63 cuMemMap p+@g 1g h@\n"
      "in_host_function s { x = cuMemAlloc 4KiB => CUDA_ERROR_NOT_PERMITTED }\n"
      "kernel_read p 0x11 2g on s for 150ms => ok\n";
  const ParseResult result = parse(text, "f");
  ASSERT_TRUE(result.ok()) << to_text(result.errors[0]);
  EXPECT_EQ(to_text(result.document), text);
}

TEST(Text, ALongTextIsRefusedAndErrorsAreBounded) {
  std::string bad = "granule 1\n";
  for (int i = 0; i < 1000; ++i) bad += "nonsense\n";
  EXPECT_EQ(parse(bad, "f").errors.size(), kMaxErrors);
  EXPECT_FALSE(parse("granule 1\nrepeat 0..max sync\n", "f").ok());
}

/// One change to a text: bytes, words and lines cut, doubled, swapped or made up.
std::string mutated(const std::vector<std::string>& texts, Rng& rng) {
  std::string text = texts[rng.below(texts.size())];
  constexpr std::string_view kAlphabet = "=>{}[]..#@%^+-|: \t\n09gaMx,";
  const std::uint64_t changes = rng.between(1, 8);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = rng.below(text.size());
    const std::size_t length = std::min<std::size_t>(rng.below(40), text.size() - at);
    switch (rng.below(6)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, 1, kAlphabet[rng.below(kAlphabet.size())]);
        break;
      case 2:
        text[at] = static_cast<char>(rng.below(256));
        break;
      case 3:
        text.insert(rng.below(text.size()), text.substr(at, length));
        break;
      case 4: {
        const std::string& other = texts[rng.below(texts.size())];
        const std::size_t from = rng.below(other.size());
        text.insert(at, other.substr(from, rng.below(80)));
        break;
      }
      default:
        text.resize(at);
        break;
    }
  }
  return text;
}

// GRANULE_FUZZ_SECONDS lengthens it, GRANULE_FUZZ_SEED moves it.
TEST(Text, AnyBytesGiveADocumentOrErrors) {
  auto texts = shipped_texts();
  for (std::string& text : texts) text.resize(std::min<std::size_t>(text.size(), 4000));
  const char* seconds = std::getenv("GRANULE_FUZZ_SECONDS");
  const char* seed = std::getenv("GRANULE_FUZZ_SEED");
  const auto budget = std::chrono::seconds(seconds ? std::atoi(seconds) : 1);
  Rng rng(seed ? std::strtoull(seed, nullptr, 10) : 1);
  const auto start = std::chrono::steady_clock::now();
  std::uint64_t rounds = 0;
  std::uint64_t parsed = 0;
  while (std::chrono::steady_clock::now() - start < budget || rounds < 200) {
    const std::string text = mutated(texts, rng);
    const ParseResult first = parse(text, "fuzz");
    ++rounds;
    ASSERT_LE(first.errors.size(), kMaxErrors);
    for (const ParseError& error : first.errors) ASSERT_FALSE(error.message.empty());
    if (!first.ok()) continue;
    ++parsed;
    const ParseResult second = parse(to_text(first.document), "fuzz");
    ASSERT_TRUE(second.ok()) << to_text(second.errors[0]) << "\n" << to_text(first.document);
    ASSERT_EQ(first.document, second.document) << text;
  }
  RecordProperty("rounds", static_cast<int>(rounds));
  EXPECT_GT(parsed, 0u);
}

TEST(Rng, IsTheSameEverywhere) {
  Rng rng(42);
  const std::uint64_t first = rng.next();
  EXPECT_EQ(Rng(42).at(0), first);
  EXPECT_NE(Rng(43).at(0), first);
  EXPECT_NE(Rng(42, 1).at(0), first);
  std::uint64_t sum = 0;
  for (int i = 0; i < 10000; ++i) sum += rng.below(10);
  EXPECT_NEAR(static_cast<double>(sum) / 10000, 4.5, 0.2);
  EXPECT_EQ(rng.below(0), 0u);
  EXPECT_EQ(rng.between(7, 7), 7u);
}

}  // namespace
}  // namespace granule::prop
