// Races planted in the core, one at a time: chosen interleavings must find each. The sources of the
// core that this is linked with are copies (planted.cmake); with no race switched on they must
// hold.
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>

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
  options.generate.features = needs;
  for (const Feature feature :
       {Feature::kStreams, Feature::kBytes, Feature::kGrow, Feature::kResize, Feature::kShrink,
        Feature::kDrop, Feature::kDeferred, Feature::kHolders, Feature::kTiny})
    options.generate.features.add(feature);
  const CampaignResult result = run_campaign(options);
  return result.failures.empty() ? "" : result.failures[0].signature;
}

/// Every interleaving of one program with at most two pre-emptions, up to a number.
std::string by_enumeration(const std::string& body) {
  const ParseResult parsed = parse("granule 1\n" + body, "race.granule");
  if (!parsed.ok()) return to_text(parsed.errors[0]);
  RunOptions options;
  options.strict = true;
  const ExploreResult result = explore(parsed.document.programs[0], options, {2, 10'000});
  return result.failed ? result.failed->failure->signature : "";
}

const char* const kPendingCounts =
    "stream s\nresource r vmm free=deferred limit=2g\n"
    "a = allocate r 2g on s => ok\nclose a => ok\n"
    "thread t1 {\n  collect r\n}\nthread t2 {\n  b = allocate r 2g on s => ok\n}\n"
    "close b => ok\n";
const char* const kStillPending =
    "stream s\nresource r vmm free=deferred limit=2g\n"
    "a = allocate r 2g on s => ok\nhold s\nuse a on s\nclose a => ok\n"
    "thread t1 {\n  b = allocate r 2g => ok\n}\n"
    "thread t2 {\n  release s\n  collect r\n}\nclose b => ok\n";
const char* const kTwoCollects =
    "stream s\nresource r vmm free=deferred\n"
    "a = allocate r 1g on s => ok\nclose a => ok\n"
    "thread t1 {\n  collect r\n}\nthread t2 {\n  collect r\n}\n";
const char* const kTwoIntoTheCache =
    "stream s\nresource r vmm cache=2g\n"
    "a = allocate r 1g on s\nb = allocate r 1g on s\nc = allocate r 1g on s\n"
    "d = allocate r 1g on s\nclose c\nclose d\n"
    "thread t1 {\n  close a => ok\n}\nthread t2 {\n  close b => ok\n}\n";
const char* const kTwoOutOfTheCache =
    "stream s\nresource r vmm cache=2g\na = allocate r 1g on s\nclose a\n"
    "thread t1 {\n  b = allocate r 1g on s => ok\n}\n"
    "thread t2 {\n  c = allocate r 1g on s => ok\n}\n";
const char* const kGoneStream =
    "stream s1\nstream s2\nresource r vmm cache=8g\na = allocate r 1g on s1\nclose a\n"
    "thread t1 {\n  b = allocate r 1g on s2 => ok\n}\nthread t2 {\n  destroy s1\n}\n";
const char* const kTwoAliases =
    "stream s\nresource r vmm\na = allocate r 1g on s\nb = grow a 1g => alias\n"
    "thread t1 {\n  close a => ok\n}\nthread t2 {\n  close b => ok\n}\n";
const char* const kTwoGrows =
    "stream s\nresource r vmm\na = allocate r 1g on s capacity=4g\nb = grow a 1g => alias\n"
    "thread t1 {\n  c = grow a 2g\n}\nthread t2 {\n  d = grow b 2g\n}\n";
const char* const kTwoAllocations =
    "stream s\nresource r vmm limit=8g\n"
    "thread t1 {\n  a = allocate r 1g on s => ok\n}\n"
    "thread t2 {\n  b = allocate r 1g on s => ok\n}\n";
const char* const kWorkerAtWork =
    "stream s\nresource r vmm worker commit_ahead=2g\n"
    "a = allocate r 1g on s capacity=8g => ok\nresize a 2g => kept\nresize a 5g => kept\n"
    "shrink a 1g\nclose a => ok\n";

FeatureSet with(std::initializer_list<Feature> features) {
  FeatureSet set;
  for (const Feature feature : features) set.add(feature);
  return set;
}

struct Race {
  int number;
  const char* what;
  const char* program;  // for the enumeration
  FeatureSet needs;     // for the campaign
};

const Race kRaces[] = {
    {1, "an idle range leaves the list after the lock", kTwoOutOfTheCache, with({Feature::kCache})},
    {2, "the budget is written outside its lock", kTwoAllocations, with({Feature::kLimit})},
    {3, "two collects reap the same range", kTwoCollects, with({Feature::kDeferred})},
    {4, "a range that is waited for is reaped", kStillPending,
     with({Feature::kDeferred, Feature::kLimit})},
    {5, "a range is not pending any more before its memory is back", kPendingCounts,
     with({Feature::kDeferred, Feature::kLimit})},
    {6, "a mapping's count is written outside its lock", kTwoAliases, with({Feature::kGrow})},
    {7, "addresses are claimed unseen", kTwoGrows, with({Feature::kGrow, Feature::kCapacity})},
    {8, "nobody is told that a range is gone", kPendingCounts,
     with({Feature::kDeferred, Feature::kLimit})},
    {9, "a lock is held across a driver call", kTwoAliases, {}},
    {10, "a stream goes while an idle range behind it is handed out", kGoneStream,
     with({Feature::kCache, Feature::kDestroy})},
    {11, "room in the cache is taken twice", kTwoIntoTheCache, with({Feature::kCache})},
    {12, "the worker extends a buffer that is being worked on", kWorkerAtWork,
     with({Feature::kWorker, Feature::kPolicy, Feature::kCapacity})},
};

TEST(Races, EachIsFound) {
  constexpr std::uint64_t kPrograms = 1'500;
  std::printf("%-64s %-44s %s\n", "planted", "by enumeration of a short program",
              "by a campaign of generated ones");
  const auto timed = [](const std::function<std::string()>& look) {
    const auto start = std::chrono::steady_clock::now();
    const Found found = in_child(look);
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    char text[120];
    std::snprintf(text, sizeof text, "%.2f s %s", seconds, found.found ? found.by.c_str() : "-");
    return std::pair{found.found, std::string(text)};
  };
  for (const Race& race : kRaces) {
    planted_race = race.number;
    const auto [enumerated, how] = timed([&] { return by_enumeration(race.program); });
    const auto [generated, also] = timed([&] { return by_campaign(race.needs, kPrograms); });
    planted_race = 0;
    std::printf("%2d  %-60s %-44s %s\n", race.number, race.what, how.c_str(), also.c_str());
    std::fflush(stdout);
    EXPECT_TRUE(enumerated || generated) << race.what;
  }
}

TEST(Races, WithNoneSwitchedOnTheCoreHolds) {
  for (const Race& race : kRaces) {
    EXPECT_EQ(by_enumeration(race.program), "") << race.what;
    EXPECT_EQ(by_campaign(race.needs, 100), "") << race.what;
  }
}

}  // namespace
}  // namespace granule::prop
