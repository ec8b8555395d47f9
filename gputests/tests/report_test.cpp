// Outcomes, recordings, lists of divergences, C sources, isolation: all without a GPU.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include <granule/backends/record.hpp>
#include <granule/prop/text.hpp>

#include "c_source.hpp"
#include "conform.hpp"
#include "device_run.hpp"
#include "divergences.hpp"
#include "jobs.hpp"
#include "model_device.hpp"
#include "prepare.hpp"
#include "recording.hpp"

namespace granule::gpu {
namespace {

std::string temporary(const char* name) {
  return testing::TempDir() + "/" + name + std::to_string(getpid());
}

prop::Program program_of(const std::string& text) {
  return prop::parse("granule 1\n" + text, "test.granule").document.programs.front();
}

constexpr const char* kSmall =
    "v = cuMemAddressReserve 2g\n"
    "h = cuMemCreate 1g\n"
    "cuMemMap v 1g h\n"
    "cuMemSetAccess v 1g device:0=rw\n"
    "cuMemsetD8 v 0x11 1g\n"
    "cuMemcpyDtoH v 1g => 0x11\n"
    "cuMemUnmap v 2g\n"
    "cuMemRelease h\n"
    "cuMemAddressFree v 2g\n";

TEST(Outcomes, SurviveThePipe) {
  Outcome outcome;
  outcome.kind = Outcome::Kind::kDiverged;
  outcome.signature = "cuMemMap status \"A\"";
  outcome.message = "two\nlines";
  outcome.calls = 7;
  Outcome read;
  ASSERT_TRUE(from_line(to_line(outcome), read));
  EXPECT_EQ(read.kind, outcome.kind);
  EXPECT_EQ(read.signature, outcome.signature);
  EXPECT_EQ(read.message, outcome.message);
  EXPECT_EQ(read.calls, 7u);
  EXPECT_FALSE(from_line("{\"kind\":\"strange\"}", read));
  EXPECT_FALSE(from_line("not json", read));
}

TEST(Recordings, AgreeWithTheModelUntilSomebodyChangesThem) {
  const std::string path = temporary("recording");
  const prop::Program program = program_of(kSmall);
  prop::RunOptions options;
  model::Config machine;
  std::unique_ptr<model::ModelBackend> device;
  FollowingMachine* following_machine = nullptr;
  options.make_machine = [&](const model::Config& config) {
    machine = config;
    device = std::make_unique<model::ModelBackend>(contrary(config));
    device->set_thread(model::ThreadId{0});
    FollowingMachine::Options how;
    how.set_device_thread = [&](std::uint32_t number) {
      device->set_thread(model::ThreadId{number});
    };
    how.record = true;
    how.compare_free = false;
    Init init;
    device->run(init);
    DevicePrimaryCtxRetain retain;  // the owner's
    device->run(retain);
    auto made = std::make_unique<FollowingMachine>(*device, config, std::move(how));
    following_machine = made.get();
    return made;
  };
  options.inspect = [&](const prop::World&) {
    EXPECT_TRUE(append_recording(path, "small", machine, following_machine->take_recording()));
  };
  ASSERT_EQ(prop::run(program, options).status, prop::RunStatus::kClean);
  std::string error;
  std::vector<Recording> recordings = read_recordings(path, error);
  ASSERT_EQ(error, "");
  ASSERT_EQ(recordings.size(), 1u);
  EXPECT_GT(recordings[0].entries.size(), 9u);
  EXPECT_TRUE(hold_against_model(recordings[0]).empty());
  for (record::Entry& entry : recordings[0].entries)
    if (std::holds_alternative<MemMap>(entry.call)) entry.status = DriverStatus::kNotSupported;
  const std::vector<Divergence> found = hold_against_model(recordings[0]);
  ASSERT_FALSE(found.empty());
  EXPECT_EQ(found[0].signature, "cuMemMap status CUDA_ERROR_NOT_SUPPORTED CUDA_SUCCESS");
  std::remove(path.c_str());
}

TEST(DivergenceLists, AreReadAndFound) {
  const std::string path = temporary("list");
  std::ofstream(path) << "# comment\nentry cuMemMap status A B\nreason it is so\ngranule 1\n"
                         "h = cuMemCreate 1g\nend\n";
  const DivergenceList list = read_divergences(path);
  EXPECT_EQ(list.error, "");
  ASSERT_NE(list.find("diverged cuMemMap status A B"), nullptr);
  EXPECT_EQ(list.find("cuMemMap status A B")->reason, "it is so");
  EXPECT_EQ(list.find("cuMemUnmap status A B"), nullptr);
  std::ofstream(path) << "entry x\ngranule 1\nend\n";
  EXPECT_NE(read_divergences(path).error, "");  // no reason
  std::remove(path.c_str());
}

/// The source of a program's calls, as the simulated driver answered them.
std::string source_of(const std::string& text) {
  record::RecordBackend* recorder = nullptr;
  std::vector<record::Entry> entries;
  prop::RunOptions options;
  options.decorate = [&](Backend& inner) {
    auto made = std::make_unique<record::RecordBackend>(inner);
    recorder = made.get();
    return made;
  };
  options.inspect = [&](const prop::World&) { entries = recorder->take(); };
  prop::run(program_of(text), options);
  return c_source("small", entries);
}

TEST(DivergenceLists, OfTheTreeAreWhole) {
  std::size_t lists = 0;
  for (const auto& entry : std::filesystem::directory_iterator(GRANULE_DIVERGENCES)) {
    const DivergenceList list = read_divergences(entry.path().string());
    EXPECT_EQ(list.error, "");
    EXPECT_FALSE(list.entries.empty());
    ++lists;
  }
  EXPECT_GT(lists, 0u);
}

TEST(CSource, HoldsStreamsAndSetsPools) {
  const std::string source = source_of(
      "stream s\nhold s\nq = cuMemPoolCreate max=64MiB\n"
      "cuMemPoolSetAttribute q RELEASE_THRESHOLD max\nx = cuMemAllocFromPoolAsync 1 q on s\n"
      "kernel_write x 0x11 1 on s\nrelease s\ncuMemPoolGetAttribute q RESERVED_MEM_CURRENT\n");
  for (const char* part : {"DO(hold(s", "let_go(s", "67108864ull);", "cuMemPoolSetAttribute(q",
                           "DO(kernel(1, b", "cuMemPoolGetAttribute(q"})
    EXPECT_NE(source.find(part), std::string::npos) << part;
}

TEST(CSource, NamesEveryValueThatTheDriverGave) {
  const std::string source = source_of(kSmall);
  EXPECT_NE(source.find("cuMemAddressReserve(&p"), std::string::npos);
  EXPECT_NE(source.find("#include <cuda.h>"), std::string::npos);
  EXPECT_NE(source.find("environment();"), std::string::npos);
  EXPECT_EQ(source.find("0x302"), std::string::npos);
}

TEST(Conformance, ProgramsAreAFunctionOfTheirNumbers) {
  const ConformOptions options;
  EXPECT_EQ(conform_text(3, 4, options), conform_text(3, 4, options));
  EXPECT_NE(conform_text(3, 4, options), conform_text(3, 5, options));
  for (std::uint64_t i = 0; i < 50; ++i)
    EXPECT_TRUE(prop::parse(conform_text(9, i, options), "x").ok()) << i;
}

std::vector<Job> jobs_named(std::initializer_list<const char*> names) {
  std::vector<Job> jobs;
  for (const char* name : names) {
    Job job;
    job.program.name = name;
    jobs.push_back(std::move(job));
  }
  return jobs;
}

/// A child whose programs do what their names say.
RunJob act(bool* spoiled) {
  return [spoiled](const Job& job, Outcome& outcome) {
    const std::string& name = job.program.name;
    if (name == "crash" || (name == "victim" && *spoiled)) std::abort();
    if (name == "hang") std::this_thread::sleep_for(std::chrono::hours(1));
    for (int i = 0; name == "slow" && i < 15; ++i) {
      log_call("call " + std::to_string(i));
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    if (name == "spoil") *spoiled = true;
    if (name == "sticky") {
      outcome.kind = Outcome::Kind::kFailed;
      return false;
    }
    return true;
  };
}

TEST(Isolation, CondemnsOnlyTheProgramAtFault) {
  const std::vector<Job> jobs = jobs_named(
      {"one", "crash", "two", "sticky", "three", "hang", "four", "spoil", "victim", "slow"});
  bool spoiled = false;
  const MakeRunner make = [&](const Job&, std::string&) { return act(&spoiled); };
  IsolationOptions options;
  options.hang_after = std::chrono::milliseconds(500);
  std::vector<Outcome> outcomes;
  ASSERT_TRUE(run_isolated(jobs, make, options, outcomes));
  using Kind = Outcome::Kind;
  for (const std::size_t clean : {0u, 2u, 4u, 6u, 7u})
    EXPECT_EQ(outcomes[clean].kind, Kind::kClean);
  EXPECT_EQ(outcomes[1].kind, Kind::kCrash);
  EXPECT_EQ(outcomes[3].kind, Kind::kFailed);
  EXPECT_EQ(outcomes[5].kind, Kind::kHang);
  EXPECT_EQ(outcomes[8].kind, Kind::kCrash);
  EXPECT_NE(outcomes[8].message.find("not behind"), std::string::npos);
  EXPECT_EQ(outcomes[9].kind, Kind::kClean);  // calls went on
}

TEST(Isolation, NamesEveryProgramThatADeathNeeds) {
  const std::vector<Job> jobs =
      jobs_named({"one", "left", "two", "three", "right", "four", "victim", "five"});
  int sides = 0;
  const MakeRunner make = [&](const Job&, std::string&) {
    return [&](const Job& job, Outcome&) {
      if (job.program.name == "left") sides |= 1;
      if (job.program.name == "right") sides |= 2;
      if (job.program.name == "victim" && sides == 3) std::abort();
      return true;
    };
  };
  std::vector<Outcome> outcomes;
  ASSERT_TRUE(run_isolated(jobs, make, {}, outcomes));
  EXPECT_EQ(outcomes[6].kind, Outcome::Kind::kCrash);
  EXPECT_NE(outcomes[6].message.find("not behind left, right"), std::string::npos)
      << outcomes[6].message;
  EXPECT_EQ(outcomes[7].kind, Outcome::Kind::kClean);
}

TEST(Jobs, OnlyWhatOutlivesAProgramNeedsAProcess) {
  EXPECT_FALSE(needs_process(program_of("resource r pool default\n")));
  EXPECT_FALSE(needs_process(program_of("stream s\nx = cuMemAllocAsync 1 on s\n")));
  EXPECT_TRUE(needs_process(program_of("context lost\n")));
  EXPECT_TRUE(needs_process(program_of("q = cuMemPoolCreate\ncuDeviceSetMemPool 0 q\n")));
}

TEST(Jobs, WaitsCanBeShortened) {
  prop::Program program = program_of("stream s\npause 30ms\nbusy s 10ms\n");
  shorten_waits(program, 20);
  EXPECT_EQ(prop::to_text(program.statements[1]), "pause 1500us");
  EXPECT_EQ(prop::to_text(program.statements[2]), "busy s 500us");
}

TEST(Jobs, AreMadeAndRunOnTheModelBeforeAnyDevice) {
  std::vector<Job> jobs(40);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    jobs[i].make = [i] {
      return program_of(i % 10 == 3 ? "h = cuMemCreate 1g => CUDA_ERROR_UNKNOWN\n"
                                    : "h = cuMemCreate 1g => ok\n");
    };
  }
  const auto outcomes = prepare(jobs, true, {});
  ASSERT_EQ(outcomes.size(), jobs.size());
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    EXPECT_EQ(outcomes[i].has_value(), i % 10 == 3) << i;
    EXPECT_FALSE(jobs[i].make);
    EXPECT_EQ(jobs[i].program.statements.size(), 1u);
  }
  EXPECT_EQ(outcomes[3]->signature.rfind("on the model: ", 0), 0u) << outcomes[3]->signature;
}

TEST(Isolation, AnUnfitMachineEndsTheRun) {
  const MakeRunner make = [](const Job&, std::string& why) -> RunJob {
    why = "busy";
    return nullptr;
  };
  std::vector<Outcome> outcomes;
  EXPECT_FALSE(run_isolated(jobs_named({"one", "two"}), make, {}, outcomes));
  EXPECT_EQ(outcomes[0].kind, Outcome::Kind::kUnfit);
  EXPECT_EQ(outcomes[0].message, "busy");
}

}  // namespace
}  // namespace granule::gpu
