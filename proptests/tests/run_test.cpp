// The interpreter: results, skips, waits that cannot end, threads, contents, faults, the end.
#include <gtest/gtest.h>

#include <granule/prop/rng.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

Program program_of(const std::string& body) {
  const ParseResult result = parse("granule 1\n" + body, "test.granule");
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : to_text(result.errors[0]));
  return result.document.programs.empty() ? Program{} : result.document.programs[0];
}

RunReport run_text(const std::string& body, RunOptions options = {}) {
  return run(program_of(body), options);
}

RunOptions strict() {
  RunOptions options;
  options.strict = true;
  return options;
}

std::string why(const RunReport& report) {
  return report.failure ? report.failure->signature + ": " + report.failure->message : "clean";
}

TEST(Run, AStatementWithoutItsOperandIsSkippedAndStrictSaysSo) {
  const std::string body = "resource r vmm\nclose a\nb = grow a 2g\nfill a 0x01 on s\n";
  const RunReport lenient = run_text(body);
  EXPECT_TRUE(lenient.ok()) << why(lenient);
  EXPECT_EQ(lenient.skipped_count, 3u);
  const RunReport failed = run_text(body, strict());
  ASSERT_TRUE(failed.failure);
  EXPECT_EQ(failed.failure->kind, Failure::Kind::kSkipped);
  EXPECT_EQ(failed.failure->line, 3u);
}

TEST(Run, AWrongResultNamesTheLineAndBothResults) {
  const RunReport report = run_text("v = cuMemAddressReserve 4096 => ok\n");
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->line, 2u);
  EXPECT_EQ(report.failure->message, "expected ok, got CUDA_ERROR_INVALID_VALUE");
}

TEST(Run, UnmetNeedsAreSaidAndNothingRuns) {
  const RunReport report = run_text("needs feature=fabric\nclose a\n", strict());
  EXPECT_EQ(report.status, RunStatus::kUnmet);
  EXPECT_EQ(report.unmet, "feature=fabric");
}

TEST(Run, AWaitThatCannotEndIsNotCounted) {
  const RunReport report = run_text(
      "stream s\nresource r vmm\na = allocate r 1g on s\nhold s\nuse a on s\nmark\n"
      "fail any nth=40 with CUDA_ERROR_UNKNOWN\n"
      "close a => would_block\nclose a => would_block\ndrop a => would_block\n"
      "expect calls any 0\nrelease s\nno_faults\nclose a => ok\n",
      strict());
  EXPECT_TRUE(report.ok()) << why(report);
}

TEST(Run, UnorderedWritesLeaveUnknownBytes) {
  const std::string unordered =
      "stream s\nstream t\nresource r vmm\na = allocate r 1g on s\n"
      "fill a 0x01 on s\nfill a 0x02 on t\ncheck a 0x01\ncheck a 0x02\n";
  EXPECT_TRUE(run_text(unordered).ok());
  const std::string ordered =
      "stream s\nstream t\nresource r vmm\na = allocate r 1g on s\n"
      "fill a 0x01 on s\nrecord e on s\nwait e on t\nfill a 0x02 on t\ncheck a 0x02\n";
  const RunReport report = run_text(ordered, strict());
  EXPECT_TRUE(report.ok()) << why(report);
}

TEST(Run, ACheckOfOtherBytesIsAFailureOnlyWhenStrict) {
  const std::string body =
      "stream s\nresource r vmm\na = allocate r 1g on s\nfill a 0x01 on s\ncheck a 0x02\n";
  EXPECT_TRUE(run_text(body).ok());
  const RunReport report = run_text(body, strict());
  ASSERT_TRUE(report.failure);
  EXPECT_EQ(report.failure->kind, Failure::Kind::kContents);
}

TEST(Run, ThreadsTakeTurnsAndASeedMixesThem) {
  const std::string body =
      "resource r vmm\nthread t {\n  a = allocate r 1g\n  b = allocate r 1g\n}\n"
      "thread u {\n  c = allocate r 1g\n  close c\n}\nexpect free -2g\n";
  RunOptions options = strict();
  options.keep_steps = true;
  const auto order = [&](std::uint64_t seed) {
    options.thread_seed = seed;
    const RunReport report = run_text(body, options);
    EXPECT_TRUE(report.ok()) << why(report);
    std::vector<std::size_t> steps;
    for (const Step& step : report.steps) steps.push_back(step.statement);
    return steps;
  };
  EXPECT_EQ(order(0), (std::vector<std::size_t>{0, 1, 3, 2, 4, 5}));
  EXPECT_EQ(order(7), order(7));
  bool other = false;
  for (std::uint64_t seed = 1; seed < 20; ++seed) other = other || order(seed) != order(0);
  EXPECT_TRUE(other);
}

TEST(Run, AnUnreportedLeakOfALibraryIsFound) {
  // A target that closes without giving anything back.
  class Leaky final : public TargetBuffer {
   public:
    DevicePtr base;
    DevicePtr ptr() const override { return base; }
    std::uint64_t size() const override { return 2u << 20; }
    bool is_closed() const override { return closed; }
    bool closed = false;
  };
  class LeakyResource final : public TargetResource {
   public:
    explicit LeakyResource(Backend& backend) : backend_(backend) {}
    Result<std::unique_ptr<TargetBuffer>> allocate(const Stream&, std::uint64_t,
                                                   const AllocateOptions&) override {
      MemAddressReserve reserve;
      reserve.size = 2u << 20;
      MemCreate create;
      create.size = reserve.size;
      backend_.run(reserve);
      backend_.run(create);
      MemMap map;
      map.ptr = reserve.ptr;
      map.size = reserve.size;
      map.handle = create.handle;
      backend_.run(map);
      MemSetAccess access;
      access.ptr = map.ptr;
      access.size = map.size;
      access.access.push({{}, Access::kReadWrite});
      backend_.run(access);
      auto made = std::make_unique<Leaky>();
      made->base = reserve.ptr;
      return std::unique_ptr<TargetBuffer>(std::move(made));
    }
    Status close(TargetBuffer& buffer, const Stream*) override {
      static_cast<Leaky&>(buffer).closed = true;
      return {};
    }
    Status drop(TargetBuffer& buffer) override { return close(buffer, nullptr); }
    std::optional<std::uint64_t> stat(std::string_view) const override { return std::nullopt; }

   private:
    Backend& backend_;
  };
  RunOptions options;
  options.checking = Checking::kNone;
  options.target = [](const TargetContext& context, const TargetOptions&) {
    return Result<std::unique_ptr<TargetResource>>(
        std::make_unique<LeakyResource>(*context.backend));
  };
  const RunReport report = run_text("resource r vmm\na = allocate r 1g\nclose a\n", options);
  ASSERT_TRUE(report.failure) << "clean";
  EXPECT_EQ(report.failure->kind, Failure::Kind::kFinish);
}

TEST(Run, TheDrawingNamesBuffersAndMemory) {
  RunOptions options;
  std::string drawing;
  options.inspect = [&](const World& world) { drawing = draw(world); };
  run_text("resource r vmm\na = allocate r 2g capacity=4g\nb = grow a 3g\n", options);
  EXPECT_NE(drawing.find("AAB."), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("a, b"), std::string::npos) << drawing;
}

/// Lines left out, doubled and swapped: always a legal program, whose invariants hold.
Program thinned(const Program& from, Rng& rng) {
  Program program;
  program.name = from.name;
  for (Statement s : from.statements) {
    const std::string_view verb = spelling_of(s.verb);
    if (verb.substr(0, 6) == "expect" || verb.substr(0, 7) == "require") continue;
    const bool setup = s.verb == Verb::kNeeds || s.verb == Verb::kDevice;
    s.expected.clear();
    if (!setup && rng.chance(1, 8)) continue;
    program.statements.push_back(s);
    if (!setup && rng.chance(1, 20)) program.statements.push_back(s);
  }
  return program;
}

TEST(Run, EverySubsetOfAProgramKeepsTheInvariants) {
  Rng rng(3);
  for (const char* name :
       {"accounting-second-grow-within-capacity", "stream-pending-free-keeps-its-share",
        "give-h21-resume-half-way", "epic-undo-late-failure-of-a-move",
        "stream-idle-range-is-ordered-for-another-stream", "epic-r1-two-threads-grow-aliases",
        "accounting-exported-buffer-comes-back-whole", "give-h32-flush-waits-for-users"}) {
    const ParseResult parsed = parse_file(std::string(GRANULE_PROGRAMS) + "/" + name + ".granule");
    ASSERT_TRUE(parsed.ok()) << name;
    for (int i = 0; i < 60; ++i) {
      const Program program = thinned(parsed.document.programs[0], rng);
      RunOptions options;
      options.checking = Checking::kFull;
      options.thread_seed = rng.next();
      if (rng.chance(1, 3)) options.machine.verdict = model::Verdict::kAdversarial;
      if (rng.chance(1, 3)) options.machine.schedule = model::Schedule::kSeeded;
      const RunReport report = run(program, options);
      ASSERT_TRUE(report.ok()) << to_text(program) << describe(program, *report.failure);
    }
  }
}

}  // namespace
}  // namespace granule::prop
