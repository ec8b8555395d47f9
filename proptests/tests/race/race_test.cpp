// Races planted in the core, one at a time: chosen interleavings must find each. The sources of the
// core that this is linked with are copies (planted.cmake); with no race switched on they must
// hold.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <string>

#include <granule/prop/campaign.hpp>
#include <granule/prop/interleave.hpp>
#include <granule/prop/text.hpp>

namespace granule {
int planted_race = 0;  // read by the planted sources
}

namespace granule::prop {
namespace {

struct Found {
  bool found = false;
  std::string by;  // signature, or the signal
};

/// A child of its own: a race may end in a crash, which is found, too.
Found in_child(const std::function<std::string()>& look) {
  int ends[2];
  EXPECT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) {
    const std::string signature = look();
    const auto written = write(ends[1], signature.data(), signature.size());
    _exit(signature.empty() || written < 0 ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t n = 0; (n = read(ends[0], buffer, sizeof buffer)) > 0;)
    text.append(buffer, static_cast<std::size_t>(n));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return {true, "signal " + std::to_string(WTERMSIG(status))};
  return {WEXITSTATUS(status) != 0, text};
}

/// Generated programs with threads, until one fails.
std::string by_campaign(FeatureSet needs, std::uint64_t programs) {
  CampaignOptions options;
  options.seed = 11;
  options.programs = programs;
  options.generate.always = needs.add(Feature::kThreads);
  options.generate.features =
      FeatureSet::all().remove(Feature::kFaults).remove(Feature::kFaultsAfter);
  const CampaignResult result = run_campaign(options);
  return result.failures.empty() ? "" : result.failures[0].signature;
}

/// Every interleaving of one program with at most two pre-emptions.
std::string by_enumeration(const std::string& body) {
  const ParseResult parsed = parse("granule 1\n" + body, "race.granule");
  if (!parsed.ok()) return "";
  RunOptions options;
  options.strict = true;
  const ExploreResult result = explore(parsed.document.programs[0], options);
  return result.failed ? result.failed->failure->signature : "";
}

struct Race {
  int number;
  const char* what;
  FeatureSet needs;
  const char* program = nullptr;  // for an enumeration
};

const char* const kPendingCounts =
    "needs memory=1GiB devices=1\nstream s\nresource r vmm free=deferred limit=2g\n"
    "a = allocate r 2g on s => ok\nclose a => ok\n"
    "thread t1 {\n  collect r\n}\nthread t2 {\n  b = allocate r 2g on s => ok\n}\n"
    "close b => ok\n";
const char* const kTwoInto =
    "needs memory=1GiB devices=1\nstream s\nresource r vmm cache=2g\n"
    "a = allocate r 1g on s\nb = allocate r 1g on s\nc = allocate r 1g on s\nclose c\n"
    "thread t1 {\n  close a => ok\n}\nthread t2 {\n  close b => ok\n}\n";
const char* const kGoneStream =
    "needs memory=1GiB devices=1\nstream s1\nstream s2\nresource r vmm cache=8g\n"
    "a = allocate r 1g on s1\nclose a\n"
    "thread t1 {\n  b = allocate r 1g on s2 => ok\n}\nthread t2 {\n  destroy s1\n}\n";
const char* const kWorkerAtWork =
    "needs memory=1GiB devices=1\nstream s\nresource r vmm worker commit_ahead=2g\n"
    "a = allocate r 1g on s capacity=8g => ok\nresize a 2g => kept\nresize a 4g => kept\n"
    "shrink a 1g\nclose a => ok\n";

const Race kRaces[] = {
    {1, "an idle range leaves the list after the lock", FeatureSet().add(Feature::kCache)},
    {2, "the budget is written outside its lock", FeatureSet().add(Feature::kLimit)},
    {3, "two collects reap the same range", FeatureSet().add(Feature::kDeferred)},
    {4, "the ladder waits for a range that is being reaped",
     FeatureSet().add(Feature::kDeferred).add(Feature::kLimit)},
    {5, "a range is not pending any more before its memory is back", {}, kPendingCounts},
    {6, "a mapping's count is written outside its lock", FeatureSet().add(Feature::kGrow)},
    {7, "addresses are claimed unseen", FeatureSet().add(Feature::kGrow).add(Feature::kCapacity)},
    {8, "nobody is told that a range is gone", {}, kPendingCounts},
    {9, "a lock is held across a driver call", {}},
    {10, "a stream goes while an idle range behind it is handed out", {}, kGoneStream},
    {11, "room in the cache is taken twice", {}, kTwoInto},
    {12, "the worker extends a buffer that is being worked on", {}, kWorkerAtWork},
    {13, "a mapping's count is not locked at all", FeatureSet().add(Feature::kGrow)},
};

TEST(Races, EachIsFound) {
  constexpr std::uint64_t kPrograms = 30'000;
  for (const Race& race : kRaces) {
    planted_race = race.number;
    const auto start = std::chrono::steady_clock::now();
    const Found found = in_child([&] {
      return race.program ? by_enumeration(race.program) : by_campaign(race.needs, kPrograms);
    });
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    planted_race = 0;
    std::printf("%2d  %-62s %6.2f s  %s\n", race.number, race.what, seconds,
                found.found ? found.by.c_str() : "NOT FOUND");
    EXPECT_TRUE(found.found) << race.what;
  }
}

TEST(Races, WithNoneSwitchedOnTheCoreHolds) {
  for (const Race& race : kRaces) {
    const std::string found =
        race.program ? by_enumeration(race.program) : by_campaign(race.needs, 500);
    EXPECT_EQ(found, "") << race.what;
  }
}

}  // namespace
}  // namespace granule::prop
