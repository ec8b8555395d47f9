// granule merge as a command: what shards add up to, what does not belong together, what is
// missing, and that nothing is counted twice or overwritten.
#include <gtest/gtest.h>

#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

namespace {

namespace fs = std::filesystem;

struct Ran {
  int exit_code = 0;
  std::string output;  // stdout and stderr
};

Ran run(const std::string& arguments) {
  Ran ran;
  FILE* pipe = popen(("{ " GRANULE_COMMAND " " + arguments + "; } 2>&1").c_str(), "r");
  if (pipe == nullptr) return ran;
  std::array<char, 512> part{};
  while (std::fgets(part.data(), part.size(), pipe) != nullptr) ran.output += part.data();
  const int status = pclose(pipe);
  ran.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
  return ran;
}

bool has(const Ran& ran, const std::string& text) {
  return ran.output.find(text) != std::string::npos;
}

std::string text_of(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void write(const fs::path& path, const std::string& text) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << text;
}

/// The object in the output, which has remarks of other hands on its error stream before it.
nlohmann::json json_of(const Ran& ran) {
  const std::size_t begin = std::min(ran.output.find("{\n"), ran.output.size());
  return nlohmann::json::parse(ran.output.substr(begin), nullptr, false);
}

/// A folder of its own for each test, empty at its start.
class Merge : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::path(testing::TempDir()) /
              (std::string("granule-merge-") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path in(const std::string& name) const { return folder_ / name; }
  std::string at(const std::string& name) const { return in(name).string(); }

  /// Shard `shard` of `shards` of a small campaign, in a folder named after it.
  Ran shard(int shard, int shards, const std::string& more = "") const {
    const std::string name = std::to_string(shard);
    return run("check --seed 7 --programs 60 --jobs 1 --shard " + name + "/" +
               std::to_string(shards) + " --out " + at("run/" + name) + " " + more);
  }
  Ran merge(const std::string& names, const std::string& more = "") const {
    std::string command = "merge " + more;
    for (std::size_t begin = 0; begin < names.size();) {
      const std::size_t end = std::min(names.find(' ', begin), names.size());
      command += " " + at(names.substr(begin, end - begin));
      begin = end + 1;
    }
    return run(command);
  }

 private:
  fs::path folder_;
};

TEST_F(Merge, ShardsAddUpToTheWholeCampaign) {
  const std::string twice = "--check-determinism";
  for (int i = 0; i < 3; ++i) ASSERT_EQ(shard(i, 3, twice).exit_code, 0);
  const Ran whole = run("check --seed 7 --programs 180 --jobs 1 --json " + twice);
  const Ran merged = merge("run", "--json");
  ASSERT_EQ(merged.exit_code, 0) << merged.output;
  const nlohmann::json one = json_of(whole);
  const nlohmann::json sum = json_of(merged);
  ASSERT_TRUE(one.is_object() && sum.is_object()) << whole.output << merged.output;
  for (const char* name :
       {"programs", "operations", "skipped", "library_calls", "model_calls", "faults_fired"})
    EXPECT_EQ(one[name], sum["total"][name]) << name;
  EXPECT_EQ(one["cells"], sum["cells"]);
  EXPECT_EQ(sum["whole"], true);
  EXPECT_TRUE(has(merge("run"), "digest " + one["digest"].get<std::string>()));
}

TEST_F(Merge, MergesOfMergesAreTheMerge) {
  for (int i = 0; i < 3; ++i) ASSERT_EQ(shard(i, 3).exit_code, 0);
  EXPECT_EQ(merge("run", "--out " + at("all")).exit_code, 0);
  EXPECT_EQ(merge("run/2 run/0", "--out " + at("two")).exit_code, 46);
  EXPECT_EQ(merge("two run/1", "--out " + at("three")).exit_code, 0);
  const std::string all = text_of(in("all/campaign-7-of-3.json"));
  EXPECT_FALSE(all.empty());
  EXPECT_EQ(text_of(in("three/campaign-7-of-3.json")), all);
  // What is there twice, the same, counts once, and that is said.
  const Ran again = merge("all run/1", "--out " + at("four"));
  EXPECT_EQ(again.exit_code, 0) << again.output;
  EXPECT_TRUE(has(again, "shard 1/3 is there twice, the same: counted once")) << again.output;
  EXPECT_EQ(text_of(in("four/campaign-7-of-3.json")), all);
}

TEST_F(Merge, WhatIsMissingOrDidNotEndIsSaidAndNotCounted) {
  for (const int i : {0, 1, 4}) ASSERT_EQ(shard(i, 5).exit_code, 0);
  const fs::path path = in("run/1/campaign-7-1-of-5.json");
  nlohmann::json summary = nlohmann::json::parse(text_of(path));
  summary["parts"][0] = {{"shard", 1}, {"state", "running"}, {"failures", nlohmann::json::array()}};
  summary["cells"] = nlohmann::json::object();
  write(path, summary.dump());
  const Ran merged = merge("run", "--json");
  EXPECT_EQ(merged.exit_code, 46) << merged.output;
  EXPECT_EQ(json_of(merged)["total"]["programs"], 120);
  EXPECT_EQ(json_of(merged)["missing"], "2-3");
  EXPECT_TRUE(has(merged, "shard 1/5 began and did not end")) << merged.output;
  // The same shard, begun again and ended: that run counts.
  ASSERT_EQ(run("check --seed 7 --programs 60 --shard 1/5 --out " + at("run2")).exit_code, 0);
  const Ran both = merge("run run2", "--json");
  EXPECT_EQ(json_of(both)["total"]["programs"], 180);
  EXPECT_TRUE(has(both, "shard 1/5 was begun twice: the run that ended counts")) << both.output;
}

TEST_F(Merge, ACampaignOfOneLeavesASummaryOnlyWhereItIsAskedTo) {
  ASSERT_EQ(run("check --seed 7 --programs 5 --out " + at("one")).exit_code, 0);
  EXPECT_TRUE(fs::exists(in("one/campaign-7-0-of-1.json")));
  fs::create_directories(in("here"));
  ASSERT_EQ(run("info >/dev/null; cd " + at("here") +
                " && " GRANULE_COMMAND " check --seed 7 --programs 5")
                .exit_code,
            0);
  EXPECT_TRUE(fs::is_empty(in("here")));
}

TEST_F(Merge, WhatDoesNotBelongTogetherIsRefused) {
  ASSERT_EQ(shard(0, 2).exit_code, 0);
  write(in("run/0/failure.granule"), "# a failure\ngranule 1\n");
  const auto refused = [&](const std::string& flags, const std::string& message) {
    fs::remove_all(in("other"));
    EXPECT_EQ(run("check --programs 5 --out " + at("other") + " " + flags).exit_code, 0);
    const Ran merged = merge("run other", "--out " + at("out"));
    EXPECT_EQ(merged.exit_code, 2) << merged.output;
    EXPECT_TRUE(has(merged, message)) << merged.output;
    EXPECT_FALSE(fs::exists(in("out"))) << "something was written";
  };
  refused("--shard 1/2 --seed 8", "seed 8 and seed 7");
  EXPECT_EQ(merge("run other", "--seed 8").exit_code, 46);
  EXPECT_EQ(merge("run other", "--seed 9").exit_code, 2);
  refused("--shard 1/3 --seed 7", "shards 3 and shards 2");
  refused("--shard 1/2 --seed 7 --driver portable", "driver portable and driver exact");
  refused("--shard 1/2 --seed 7 --ops 31", "ops 31 and ops 30");
  refused("--shard 1/2 --seed 7 --exclude faults", "different features");
  refused("--shard 0/2 --seed 7", "shard 0/2 is there twice, with different results");
}

TEST_F(Merge, WhatCannotBeReadIsRefusedByName) {
  EXPECT_EQ(merge("nothing").exit_code, 2);
  fs::create_directories(in("empty"));
  EXPECT_TRUE(has(merge("empty"), "nothing of a campaign"));
  ASSERT_EQ(shard(0, 1).exit_code, 0);
  const fs::path path = in("run/0/campaign-7-0-of-1.json");
  const std::string text = text_of(path);
  write(path, text.substr(0, text.size() / 2));
  Ran merged = merge("run");
  EXPECT_EQ(merged.exit_code, 2);
  EXPECT_TRUE(has(merged, path.string() + ": expected JSON: byte ")) << merged.output;
  nlohmann::json json = nlohmann::json::parse(text);
  json["parts"][0].erase("operations");
  write(path, json.dump());
  merged = merge("run");
  EXPECT_TRUE(has(merged, "expected parts: `operations`, which is not there")) << merged.output;
  json["parts"][0]["operations"] = -1;
  write(path, json.dump());
  merged = merge("run");
  EXPECT_TRUE(has(merged, "expected parts: `operations`, a number from 0 on")) << merged.output;
  json = nlohmann::json::parse(text);
  json["cells"]["levitate => ok"] = "1";
  write(path, json.dump());
  EXPECT_EQ(merge("run").exit_code, 2);
}

TEST_F(Merge, TheFolderForTheResultIsNoneOfTheShards) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(shard(i, 2).exit_code, 0);
  EXPECT_EQ(merge("run", "--out " + at("run")).exit_code, 2);
  EXPECT_EQ(merge("run", "--out " + at("run/0")).exit_code, 2);
  EXPECT_EQ(merge("run", "--out " + at("run/all")).exit_code, 0);
}

TEST_F(Merge, OfOneSignatureTheShortestProgramIsKept) {
  const std::string target = "--target zoo:canary";
  for (int i = 0; i < 2; ++i) {
    const Ran ran = shard(i, 2, target + (i == 0 ? " --no-shrink" : ""));
    ASSERT_EQ(ran.exit_code, 42) << ran.output;
  }
  // Another program under the name that the copy would get.
  fs::path shortest;
  for (const auto& entry : fs::directory_iterator(in("run/1")))
    if (entry.path().extension() == ".granule") shortest = entry.path();
  ASSERT_FALSE(shortest.empty());
  write(in("out") / shortest.filename(), "granule 1\n");
  const Ran merged = merge("run", "--json --out " + at("out"));
  EXPECT_EQ(merged.exit_code, 42) << merged.output;
  const nlohmann::json json = json_of(merged);
  ASSERT_EQ(json["failures"].size(), 1u) << merged.output;
  EXPECT_EQ(json["failures"][0]["programs"], 2);
  const std::string file = json["failures"][0]["file"];
  EXPECT_EQ(text_of(file), text_of(shortest));
  EXPECT_EQ(text_of(in("out") / shortest.filename()), "granule 1\n");
  const std::string reproduce = json["failures"][0]["reproduce"];
  EXPECT_EQ(run(reproduce.substr(std::string("granule ").size())).exit_code, 42) << reproduce;
  // Each shard's failure now names that program, so that a merge of the merge finds it.
  fs::remove(in("out") / shortest.filename());
  const Ran again = merge("out", "--json");
  EXPECT_EQ(again.exit_code, 42);
  EXPECT_EQ(json_of(again)["failures"].size(), 1u) << again.output;
  EXPECT_FALSE(has(again, "is not there any more")) << again.output;
}

TEST_F(Merge, CellsAreThoseOfAllShards) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(shard(i, 2).exit_code, 0);
  const std::string first = merge("run/0", "--cells").output;
  const std::string all = merge("run", "--cells").output;
  // An operation and outcome that only the second shard reached.
  std::string only;
  for (std::size_t at = 0; only.empty() && at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const std::string line = all.substr(at, end - at);
    const std::string cell = line.substr(0, line.find("  #"));
    if (line.find(" => ") != std::string::npos && first.find(cell + "  #") == std::string::npos)
      only = cell;
    at = end + 1;
  }
  ASSERT_FALSE(only.empty());
  write(in("list.txt"), only + "\n");
  EXPECT_EQ(merge("run", "--must-reach " + at("list.txt")).exit_code, 0) << only;
  const Ran missed = merge("run/0", "--must-reach " + at("list.txt"));
  EXPECT_EQ(missed.exit_code, 42);
  EXPECT_TRUE(has(missed, "NOT REACHED: " + only)) << missed.output;
  write(in("list.txt"), "clsoe => ok\n");
  EXPECT_EQ(merge("run", "--must-reach " + at("list.txt")).exit_code, 2);
}

const std::string kRun =
    R"({"run":"check","driver":"580","gpu":"x","kernel":"k","mig":"","seed":3})"
    "\n";
std::string line(const std::string& name, const std::string& kind) {
  return R"({"suite":"check","name":")" + name + R"(","outcome":{"kind":")" + kind + "\"}}\n";
}

TEST_F(Merge, ReportsOfDevicesAreOneFileEach) {
  write(in("a/programs.jsonl"), kRun + line("p1", "clean") + line("p2", "diverged"));
  write(in("b/night/more.jsonl"), kRun + line("p3", "clean"));
  const std::string suite =
      "<testsuite name=\"check\" tests=\"1\" failures=\"1\" errors=\"0\">\n"
      "  <testcase name=\"p2\"/>\n</testsuite>\n";
  write(in("a/junit.xml"), "<testsuites>\n" + suite + "</testsuites>\n");
  write(in("b/junit.xml"), "<testsuites>\n" + suite +
                               "<testsuite name=\"other\">\n</testsuite>\n"
                               "</testsuites>\n");
  const Ran merged = merge("a b", "--out " + at("out"));
  EXPECT_EQ(merged.exit_code, 43) << merged.output;
  EXPECT_TRUE(has(merged, "2 clean, 1 diverged")) << merged.output;
  EXPECT_EQ(text_of(in("out/programs.jsonl")),
            text_of(in("a/programs.jsonl")) + text_of(in("b/night/more.jsonl")));
  const std::string junit = text_of(in("out/junit.xml"));
  EXPECT_EQ(junit.find(suite), junit.rfind(suite));
  EXPECT_NE(junit.find("\"other\""), std::string::npos) << junit;
  // Merged again beside what it was made of: nothing counts twice.
  const Ran again = merge("out b", "--json");
  EXPECT_EQ(json_of(again)["outcomes"]["clean"], 2) << again.output;
  EXPECT_EQ(json_of(again)["suites"], 2) << again.output;
}

TEST_F(Merge, AReportThatIsCutOffIsSaid) {
  write(in("a/p.jsonl"), kRun + line("p1", "clean") + R"({"suite":"che)");
  const Ran cut = merge("a", "--json --out " + at("out"));
  EXPECT_EQ(cut.exit_code, 46) << cut.output;
  EXPECT_EQ(json_of(cut)["outcomes"]["clean"], 1);
  EXPECT_EQ(text_of(in("out/programs.jsonl")), kRun + line("p1", "clean"));
  write(in("a/p.jsonl"), kRun + "nonsense\n" + line("p1", "clean"));
  const Ran wrong = merge("a");
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_TRUE(has(wrong, "p.jsonl:2:1: expected a JSON line")) << wrong.output;
}

TEST_F(Merge, ReadsTheReportsThatReplayWrites) {
  const std::string program = GRANULE_PROGRAMS "/driver-create-sizes.granule";
  fs::create_directories(in("a"));
  ASSERT_EQ(run("replay --jsonl " + at("a/p.jsonl") + " --junit " + at("a/j.xml") + " " + program)
                .exit_code,
            0);
  const Ran merged = merge("a", "--json");
  EXPECT_EQ(merged.exit_code, 0) << merged.output;
  EXPECT_EQ(json_of(merged)["outcomes"]["clean"], 1) << merged.output;
  EXPECT_EQ(json_of(merged)["suites"], 1) << merged.output;
}

}  // namespace
