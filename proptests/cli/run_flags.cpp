// Flags to RunOptions.
#include "run_flags.hpp"

#include <granule/prop/zoo.hpp>

namespace granule::cli {

void use_target(const std::string& name, prop::RunOptions& options) {
  if (name == "core") return;
  if (name.rfind("zoo:", 0) == 0) {
    if (const prop::Specimen* specimen = prop::find_specimen(name.substr(4)))
      return prop::plant(*specimen, options);
    options.target = prop::zoo_target(name.substr(4));
    if (options.target) return;
  }
  std::string known = "core";
  for (const prop::Specimen& specimen : prop::specimens())
    known += ", zoo:" + std::string(specimen.name);
  throw CLI::ValidationError("--target", "`" + name + "` is none of " + known);
}

void add_run_flags(CLI::App& command, RunFlags& flags) {
  command.add_flag("--strict", flags.strict,
                   "A skipped statement is a failure, as for the programs of a corpus");
  command
      .add_option("--driver", flags.driver,
                  "How strict the simulated driver is where drivers differ: exact (as measured), "
                  "portable (refuses what other drivers refuse), adversarial (the worst allowed "
                  "choice everywhere)")
      ->check(CLI::IsMember({"exact", "portable", "adversarial"}))
      ->capture_default_str();
  command.add_option("--target", flags.target, "The allocator under test: core, or zoo:NAME")
      ->capture_default_str();
  command
      .add_option("--schedule", flags.schedule,
                  "When queued work runs: lazy (when something waits for it), eager, seeded")
      ->check(CLI::IsMember({"lazy", "eager", "seeded"}))
      ->capture_default_str();
  command
      .add_option("--checking", flags.checking,
                  "Invariants after each statement: none, incremental, full")
      ->check(CLI::IsMember({"none", "incremental", "full"}))
      ->capture_default_str();
  command.add_option("--seed", flags.seed, "Seed of the simulated driver's own choices")
      ->capture_default_str();
  command
      .add_option("--thread-seed", flags.thread_seed,
                  "Picks the interleaving of thread blocks; 0 takes turns")
      ->capture_default_str();
  command
      .add_option("--interleave", flags.interleave,
                  "Where the threads of a program change: between statements; at random wherever "
                  "the library locks, waits, takes host memory or calls the driver; pct (by "
                  "priorities that fall at a few such points); told (as --choices says)")
      ->check(CLI::IsMember({"statements", "random", "pct", "told"}))
      ->capture_default_str();
  command.add_option("--changes", flags.changes, "pct: points at which a priority falls")
      ->capture_default_str();
  command
      .add_option("--choices", flags.choices,
                  "told: what to take at each point where several threads can go on; 0 is no "
                  "pre-emption")
      ->delimiter(',');
  command.add_flag("--promise-no-captures", flags.promise_no_captures,
                   "Streams of a program that captures nothing are bound as never capturing: the "
                   "library then asks none of them");
}

prop::Interleave interleave_named(const std::string& name) {
  if (name == "random") return prop::Interleave::kRandom;
  if (name == "pct") return prop::Interleave::kPct;
  if (name == "told") return prop::Interleave::kTold;
  return prop::Interleave::kStatements;
}

prop::RunOptions run_options(const RunFlags& flags) {
  prop::RunOptions options;
  options.strict = flags.strict;
  options.thread_seed = flags.thread_seed;
  options.interleave = {interleave_named(flags.interleave), flags.changes, flags.choices};
  options.promise_no_captures = flags.promise_no_captures;
  options.checking = flags.checking == "none"   ? prop::Checking::kNone
                     : flags.checking == "full" ? prop::Checking::kFull
                                                : prop::Checking::kIncremental;
  model::Config& machine = options.machine;
  machine.seed = flags.seed;
  machine.schedule = flags.schedule == "eager"    ? model::Schedule::kEager
                     : flags.schedule == "seeded" ? model::Schedule::kSeeded
                                                  : model::Schedule::kLazy;
  if (flags.driver == "portable") machine.verdict = model::Verdict::kPortable;
  if (flags.driver == "adversarial") machine.verdict = model::Verdict::kAdversarial;
  use_target(flags.target, options);
  return options;
}

void add_device_flags(CLI::App& command, DeviceFlags& flags) {
  command
      .add_option("--backend", flags.backend,
                  "What answers driver calls: model, cuda (a GPU, followed by the model call by "
                  "call), second-model (another model in the GPU's place)")
      ->check(CLI::IsMember({"model", "cuda", "second-model"}))
      ->capture_default_str();
  command.add_flag("--alone", flags.alone, "On a device: each program in a process of its own");
  if (command.get_option_no_throw("--hang-after") == nullptr) {
    command
        .add_option("--hang-after", flags.hang_after,
                    "On a device: a program that makes no driver call for longer hangs; ten times "
                    "that is the most it may take")
        ->capture_default_str();
  }
  command.add_option("--known", flags.known, "Lists of known divergences: a folder, or one file")
      ->capture_default_str();
  command.add_option("--jsonl", flags.json,
                     "Append a JSON line for each program (check: on a device)");
  command.add_option("--junit", flags.junit, "Write JUnit XML (check: on a device)");
  command.add_flag("--keep-going", flags.keep_going,
                   "On a device: print differences from the model and go on");
  command.add_option("--record", flags.record, "On a device: append all calls with their answers");
}

void refuse_device_flags(const DeviceFlags& flags, const ModelCan& can) {
  const auto refuse = [](bool given, const char* name) {
    if (given)
      throw CLI::ValidationError(name,
                                 "does nothing on the model alone: it needs --backend cuda "
                                 "or --backend second-model");
  };
  refuse(flags.alone, "--alone");
  refuse(flags.keep_going, "--keep-going");
  refuse(!flags.record.empty(), "--record");
  if (can.report) return;
  refuse(!flags.json.empty(), "--jsonl");
  refuse(!flags.junit.empty(), "--junit");
}

}  // namespace granule::cli
