// Host threads of a program under a scheduler: chosen interleavings, waits, deadlocks.
#include <gtest/gtest.h>

#include <mutex>

#include <granule/prop/interleave.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

Program threads_of(const std::string& body) {
  const ParseResult result = parse("granule 1\n" + body, "test.granule");
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : to_text(result.errors[0]));
  return result.document.programs.empty() ? Program{} : result.document.programs[0];
}

const char* const kTwoThreads =
    "stream s\nresource r vmm cache=4g\na = allocate r 1g on s\nb = grow a 1g\n"
    "thread t1 {\n  c = grow a 2g\n  close c\n}\n"
    "thread t2 {\n  d = grow b 2g\n  fill d 0x11 on s\n  close b\n}\n"
    "check d 0x11\nclose a\nclose d\ntrim r 0\nexpect free 0\n";

TEST(Threads, ASeedIsOneInterleavingAndSeedsDiffer) {
  const Program program = threads_of(kTwoThreads);
  for (const Interleave how : {Interleave::kRandom, Interleave::kPct}) {
    RunOptions options;
    options.keep_steps = true;
    options.strict = true;
    options.interleave.how = how;
    const auto order = [&](std::uint64_t seed) {
      options.thread_seed = seed;
      const RunReport report = run(program, options);
      EXPECT_TRUE(report.ok()) << report.failure->message;
      std::string text;
      for (const Step& step : report.steps)
        text += std::to_string(step.statement) + step.reply + " ";
      return text + std::to_string(report.calls);
    };
    bool other = false;
    for (std::uint64_t seed = 1; seed < 60; ++seed) {
      EXPECT_EQ(order(seed), order(seed));
      other = other || order(seed) != order(1);
    }
    EXPECT_TRUE(other);
  }
}

TEST(Threads, AnEnumerationRunsEachInterleavingWithinItsBoundOnce) {
  const Program program = threads_of(
      "resource r vmm\nthread t1 {\n  a = allocate r 1g\n}\nthread t2 {\n  b = allocate r 1g\n}\n");
  std::uint64_t before = 0;
  for (const std::uint32_t bound : {0u, 1u, 2u}) {
    const ExploreResult once = explore(program, {}, {bound, 100'000});
    const ExploreResult again = explore(program, {}, {bound, 100'000});
    EXPECT_TRUE(once.complete);
    EXPECT_FALSE(once.failed) << once.failed->failure->message;
    EXPECT_EQ(once.runs, again.runs);
    EXPECT_GT(once.runs, 2 * before);
    before = once.runs;
  }
  EXPECT_FALSE(explore(program, {}, {2, 10}).complete);
}

TEST(Threads, AWaitInTheDriverLetsTheOthersRunAndEndsWhenTheyLetIt) {
  const Program program = threads_of(
      "stream s\nresource r vmm\na = allocate r 1g on s\nhold s\nuse a on s\n"
      "thread t1 {\n  close a => ok\n}\nthread t2 {\n  release s => ok\n}\nexpect free 0\n");
  RunOptions options;
  options.strict = true;
  const ExploreResult result = explore(program, options);
  EXPECT_TRUE(result.complete);
  EXPECT_FALSE(result.failed) << result.failed->failure->message;
}

TEST(Threads, AWaitThatNobodyCanEndSaysSo) {
  const Program program = threads_of(
      "stream s\nresource r vmm\na = allocate r 1g on s\nhold s\nuse a on s\n"
      "thread t1 {\n  close a => would_block\n}\nthread t2 {\n  b = allocate r 1g => ok\n}\n"
      "release s\nclose a => ok\nclose b => ok\nexpect free 0\n");
  RunOptions options;
  options.strict = true;
  options.interleave.how = Interleave::kRandom;
  for (options.thread_seed = 1; options.thread_seed < 40; ++options.thread_seed) {
    const RunReport report = run(program, options);
    ASSERT_TRUE(report.ok()) << report.failure->message;
  }
}

/// Takes two locks, in an order that depends on what is asked of it.
class CrossedLocks final : public TargetResource {
 public:
  explicit CrossedLocks(const Runtime& runtime) : first_(runtime), second_(runtime) {}
  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream&, std::uint64_t,
                                                 const AllocateOptions&) override {
    return Error();
  }
  Status close(TargetBuffer&, const Stream*) override { return {}; }
  Status drop(TargetBuffer&) override { return {}; }
  Status collect() override { return both(first_, second_); }
  Status trim(std::uint64_t) override { return both(second_, first_); }
  std::optional<std::uint64_t> stat(std::string_view) const override { return std::nullopt; }

 private:
  static Status both(SeamMutex& a, SeamMutex& b) {
    const std::unique_lock<SeamMutex> outer(a);
    const std::unique_lock<SeamMutex> inner(b);
    return {};
  }
  SeamMutex first_;
  SeamMutex second_;
};

TEST(Threads, ADeadlockIsFoundAndSaysWhoWaitsForWhat) {
  const Program program =
      threads_of("resource r vmm\nthread t1 {\n  collect r\n}\nthread t2 {\n  trim r 0\n}\n");
  RunOptions options;
  options.target = [](const TargetContext& context,
                      const TargetOptions&) -> Result<std::unique_ptr<TargetResource>> {
    return std::unique_ptr<TargetResource>(
        std::make_unique<CrossedLocks>(context.environment.runtime));
  };
  const ExploreResult none = explore(program, options, {0, 1000});
  EXPECT_FALSE(none.failed);
  const ExploreResult result = explore(program, options, {1, 1000});
  ASSERT_TRUE(result.failed);
  EXPECT_EQ(result.failed->failure->signature, "threads deadlock");
  const std::string& message = result.failed->failure->message;
  EXPECT_NE(message.find("t1: waits for lock 2, which t2 holds; holds lock 1"), std::string::npos)
      << message;
  EXPECT_NE(message.find("t2: waits for lock 1, which t1 holds; holds lock 2"), std::string::npos)
      << message;
  options.interleave.how = Interleave::kTold;
  options.interleave.told = result.told;
  const RunReport again = run(program, options);
  ASSERT_TRUE(again.failure);
  EXPECT_EQ(again.failure->signature, "threads deadlock");
}

/// One thread maps memory, another unmaps it; between them a lock, or nothing.
class HandedOver final : public TargetResource {
 public:
  HandedOver(const TargetContext& context, bool locked)
      : backend_(*context.backend),
        runtime_(context.environment.runtime),
        locked_(locked),
        mutex_(runtime_) {}
  ~HandedOver() override { give_back(); }
  HandedOver(const HandedOver&) = delete;
  HandedOver& operator=(const HandedOver&) = delete;

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream&, std::uint64_t,
                                                 const AllocateOptions&) override {
    return Error();
  }
  Status close(TargetBuffer&, const Stream*) override { return {}; }
  Status drop(TargetBuffer&) override { return {}; }
  std::optional<std::uint64_t> stat(std::string_view) const override { return std::nullopt; }

  Status collect() override {
    MemAddressReserve reserve;
    reserve.size = kSize;
    call(reserve);
    MemCreate create;
    create.size = kSize;
    call(create);
    MemMap map;
    map.ptr = reserve.ptr;
    map.size = kSize;
    map.handle = create.handle;
    call(map);
    exchange({reserve.ptr, create.handle});
    return {};
  }
  Status trim(std::uint64_t) override {
    give_back();
    return {};
  }

 private:
  struct Made {
    DevicePtr ptr;
    AllocationHandle handle;
  };
  static constexpr std::uint64_t kSize = std::uint64_t{2} << 20;

  template <class C>
  void call(C& one) {
    runtime_.yield_point();
    EXPECT_EQ(backend_.run(one), DriverStatus::kSuccess);
  }
  Made exchange(Made made) {
    if (!locked_) return std::exchange(made_, made);
    const std::unique_lock<SeamMutex> lock(mutex_);
    return std::exchange(made_, made);
  }
  void give_back() {
    const Made made = exchange({});
    if (!made.ptr) return;
    MemUnmap unmap{made.ptr, kSize};
    call(unmap);
    MemRelease release{made.handle};
    call(release);
    MemAddressFree free{made.ptr, kSize};
    call(free);
  }

  Backend& backend_;
  Runtime runtime_;
  bool locked_;
  SeamMutex mutex_;
  Made made_;
};

TEST(Threads, WhatNothingOrdersIsFoundThoughTheOrderWasGood) {
  const Program program =
      threads_of("resource r vmm\nthread t1 {\n  collect r\n}\nthread t2 {\n  trim r 0\n}\n");
  for (const bool locked : {true, false}) {
    RunOptions options;
    options.checking = Checking::kNone;  // it keeps no figures
    options.finish = false;
    options.target = [locked](const TargetContext& context,
                              const TargetOptions&) -> Result<std::unique_ptr<TargetResource>> {
      return std::unique_ptr<TargetResource>(std::make_unique<HandedOver>(context, locked));
    };
    const ExploreResult result = explore(program, options);
    EXPECT_EQ(result.failed.has_value(), !locked);
    if (!result.failed) continue;
    EXPECT_EQ(result.failed->failure->signature, "threads unordered mapping");
  }
}

}  // namespace
}  // namespace granule::prop
