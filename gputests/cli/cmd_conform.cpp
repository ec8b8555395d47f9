// granule conform: random driver calls on a device and on its model, side by side.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "command.hpp"
#include "conform.hpp"
#include "device_commands.hpp"
#include "model_error.hpp"
#include "run_flags.hpp"

namespace granule::cli {
namespace {

struct ConformFlags {
  DeviceFlags device;
  std::uint64_t seed = 1;
  std::uint64_t first = 0;
  std::uint64_t count = 0;  // programs; 0: by calls
  std::uint64_t calls = 0;
  std::uint32_t length = 400;
  std::uint64_t failures = 20;
  std::string plant;
  std::string out = "granule-conform";
  bool print = false;
  bool no_shrink = false;
};

void conform(const ConformFlags& flags) {
  if (flags.print) {
    gpu::ConformOptions options;
    options.calls = flags.length;
    std::printf("%s", gpu::conform_text(flags.seed, flags.first, options).c_str());
    return;
  }
  gpu::SessionOptions options = session_options(flags.device);
  options.plant = flags.plant;
  options.out = flags.out;
  options.failures = flags.failures;
  gpu::watch_interrupts();
  gpu::Session session(options);
  if (!session.open("conform", flags.seed))
    return set_exit_code(static_cast<ExitCode>(session.exit_code()));
  bool fit = session.run_known();
  constexpr std::uint64_t kBatch = 250;
  std::uint64_t done = 0;
  const std::uint64_t programs = flags.count != 0   ? flags.count
                                 : flags.calls != 0 ? UINT64_MAX
                                                    : 100;
  while (fit && done < programs && !session.interrupted() && !session.failed_enough()) {
    if (flags.calls != 0 && session.report().calls() >= flags.calls) break;
    const std::uint64_t next = std::min(kBatch, programs - done);
    fit = session.run("conform", conform_jobs(flags.seed, flags.first + done, next, flags.length),
                      {.batch = kBatch, .model_first = false, .shrink = !flags.no_shrink});
    done += next;
  }
  session.close();
  set_exit_code(static_cast<ExitCode>(session.exit_code()));
}

void add_conform(CLI::App& app) {
  auto flags = std::make_shared<ConformFlags>();
  CLI::App* command =
      app.add_subcommand("conform", "Hold a driver against the model with random driver calls");
  add_device_flags(*command, flags->device);
  command->add_option("--seed", flags->seed, "Seed of the programs")->capture_default_str();
  command->add_option("--first", flags->first, "Number of the first program");
  command->add_option("--count", flags->count, "Programs (default 100)");
  command->add_option("--calls", flags->calls, "Go on until so many driver calls were made");
  command->add_option("--length", flags->length, "Statements of a program, about")
      ->capture_default_str();
  command->add_option("--failures", flags->failures, "End after so many failing programs")
      ->capture_default_str();
  command
      ->add_option("--plant", flags->plant, "An error planted into the model, which must be found")
      ->check(CLI::IsMember(gpu::ModelError::names()));
  command->add_option("--out", flags->out, "Folder for programs that diverge")
      ->capture_default_str();
  command->add_flag("--print", flags->print, "Print program --first and make no call");
  command->add_flag("--no-shrink", flags->no_shrink, "Save failing programs as they are");
  command->footer(
      "Legal, illegal and borderline calls; the device's answers are compared with the model's "
      "one\n"
      "by one: codes, access by granule, contents, figures of pools, and free memory to the byte\n"
      "after each call. What a driver may choose is followed. With --backend model a second model\n"
      "with other places and another schedule stands in for the device. Exit code 43 if they\n"
      "differ; the program is shrunk and saved.\n\nExamples:\n"
      "  granule conform --backend cuda --calls 1000000 --seed 7\n"
      "  granule conform --plant unmap-refuses-holes\n"
      "  granule conform --backend cuda --plant create-costs-more");
  command->callback([flags] { conform(*flags); });
}

const Command command(25, add_conform);

}  // namespace
}  // namespace granule::cli
