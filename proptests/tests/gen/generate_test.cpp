// Generated programs: legal text, the same everywhere, only the features asked for.
#include <granule/prop/generate.hpp>

#include <algorithm>

#include <gtest/gtest.h>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

TEST(Generate, EveryProgramParsesBack) {
  for (std::uint64_t index = 0; index < 400; ++index) {
    const Program program = generate(11, index);
    const std::string text = to_text(program);
    const ParseResult parsed = parse(text, program.name + ".granule");
    ASSERT_TRUE(parsed.ok()) << to_text(parsed.errors[0]) << "\n" << text;
    ASSERT_EQ(parsed.document.programs.size(), 1u);
    ASSERT_EQ(parsed.document.programs[0], program) << text;
  }
}

TEST(Generate, IsAFunctionOfSeedAndNumber) {
  EXPECT_EQ(generate(3, 5), generate(3, 5));
  EXPECT_NE(generate(3, 5).statements, generate(3, 6).statements);
  EXPECT_NE(generate(3, 5).statements, generate(4, 5).statements);
}

TEST(Generate, RecordedChoicesMakeTheSameProgram) {
  RandomChooser random{Rng(5, 9)};
  RecordingChooser recorder(random);
  const Program program = generate(recorder);
  ReplayChooser replay(recorder.choices());
  EXPECT_EQ(generate(replay), program);
}

TEST(Generate, AnyStringOfChoicesIsAProgram) {
  Rng rng(17);
  for (int round = 0; round < 50; ++round) {
    std::vector<std::uint64_t> choices(rng.below(200));
    for (std::uint64_t& choice : choices) choice = rng.next();
    ReplayChooser replay(std::move(choices));
    EXPECT_FALSE(generate(replay).statements.empty());
  }
}

bool uses(const Program& program, Verb verb) {
  return std::any_of(program.statements.begin(), program.statements.end(),
                     [&](const Statement& s) { return s.verb == verb; });
}

TEST(Generate, FeaturesCanBeLeftOut) {
  GenerateOptions options;
  options.features.remove(Feature::kFaults).remove(Feature::kSuspend).remove(Feature::kThreads);
  for (std::uint64_t index = 0; index < 200; ++index) {
    const Program program = generate(2, index, options);
    EXPECT_FALSE(uses(program, Verb::kFail));
    EXPECT_FALSE(uses(program, Verb::kSuspend));
    for (const Statement& s : program.statements) EXPECT_TRUE(s.thread.empty());
  }
}

TEST(Generate, FeaturesCanBeForced) {
  GenerateOptions options;
  options.always.add(Feature::kSecondDevice);
  for (std::uint64_t index = 0; index < 50; ++index)
    EXPECT_TRUE(uses(generate(2, index, options), Verb::kDevice)) << "program " << index;
}

TEST(Generate, NamesOfFeaturesAreReadBack) {
  for (std::size_t i = 0; i < kFeatureCount; ++i) {
    const auto feature = static_cast<Feature>(i);
    EXPECT_EQ(feature_named(name_of(feature)), feature);
    EXPECT_FALSE(description_of(feature).empty());
  }
  EXPECT_FALSE(feature_named("nothing"));
}

TEST(Generate, EveryOperationOccurs) {
  bool seen[kVerbCount] = {};
  for (std::uint64_t index = 0; index < 3000; ++index)
    for (const Statement& s : generate(1, index).statements)
      seen[static_cast<std::size_t>(s.verb)] = true;
  for (const Verb verb : {Verb::kAllocate,    Verb::kGrow,          Verb::kResize,
                          Verb::kShrink,      Verb::kSuspend,       Verb::kResume,
                          Verb::kClose,       Verb::kDrop,          Verb::kCollect,
                          Verb::kTrim,        Verb::kSet,           Verb::kReserveProbe,
                          Verb::kDecoy,       Verb::kHole,          Verb::kRemove,
                          Verb::kPeer,        Verb::kResetHigh,     Verb::kGrant,
                          Verb::kUsed,        Verb::kHolder,        Verb::kExport,
                          Verb::kImport,      Verb::kMove,          Verb::kFill,
                          Verb::kCopy,        Verb::kUse,           Verb::kBusy,
                          Verb::kHold,        Verb::kRelease,       Verb::kRecord,
                          Verb::kWait,        Verb::kSync,          Verb::kDestroy,
                          Verb::kPause,       Verb::kBeginCapture,  Verb::kEndCapture,
                          Verb::kFail,        Verb::kFailHostAlloc, Verb::kNoFaults,
                          Verb::kSteal,       Verb::kUnsteal,       Verb::kIgnoreHints,
                          Verb::kResourceVmm, Verb::kResourcePool,  Verb::kResourceRecycler})
    EXPECT_TRUE(seen[static_cast<std::size_t>(verb)]) << spelling_of(verb);
}

}  // namespace
}  // namespace granule::prop
