// granule import: an application's allocation log as a program.
#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include <granule/prop/text.hpp>

#include "alloclog/alloclog.hpp"
#include "alloclog/program_of.hpp"
#include "command.hpp"
#include "whole_file.hpp"

namespace granule::cli {
namespace {

using Count = unsigned long long;

struct ImportFlags {
  std::string file;
  std::string out;
  std::string resource = "vmm";
  std::string default_stream = "legacy";
  std::string threads = "merged";
  bool blocking = false;
  std::uint64_t limit = UINT64_MAX;
  std::string level = "blocks";
  std::optional<std::uint32_t> device;
};

const char* name_of(alloclog::Oddity oddity) {
  switch (oddity) {
    case alloclog::Oddity::kUnknownFree:
      return "frees of what the log does not allocate (it begins in the middle), left out";
    case alloclog::Oddity::kDoubleFree:
      return "second frees of a pointer, left out";
    case alloclog::Oddity::kOtherSize:
      return "frees that tell another size than the allocation, taken as frees";
    case alloclog::Oddity::kNoFree:
      return "allocations of a pointer that was not freed, whose old buffer is closed first";
    case alloclog::Oddity::kEmpty:
      return "allocations of 0 bytes, which only vmm resources have, left out";
    case alloclog::Oddity::kFailure:
      break;
  }
  return "allocations that failed, a comment each in the program";
}

/// What was made of the log, on stderr: stdout may be the program.
void report(const ImportFlags& flags, const alloclog::Trace& log,
            const alloclog::Written& written) {
  const auto say = [&](const std::string& text) {
    std::fprintf(stderr, "%s: %s\n", flags.file.c_str(), text.c_str());
  };
  for (const std::string& note : log.notes) say(note);
  for (const std::string& example : written.examples) say(example);
  for (std::size_t i = 0; i < alloclog::kOddities; ++i)
    if (written.oddities[i] != 0)
      say(std::string(name_of(static_cast<alloclog::Oddity>(i))) + ": " +
          std::to_string(written.oddities[i]));
  if (written.left_out != 0)
    say(std::to_string(written.left_out) + " events behind --limit were left out");
  std::fprintf(stderr,
               "%s: %llu allocations, %llu frees, %llu live at the end; at most %llu bytes at a "
               "time; %u streams, %u threads\n",
               flags.file.c_str(), static_cast<Count>(written.allocations),
               static_cast<Count>(written.frees), static_cast<Count>(written.live),
               static_cast<Count>(written.live_bytes), written.streams, written.threads);
}

/// The resource line that the user wrote must parse; what is wrong with it, or nothing.
std::string wrong_with(const std::string& resource) {
  if (resource.find_first_of("\r\n#") != std::string::npos) return "is more than one statement";
  const prop::ParseResult parsed =
      prop::parse("granule 1\nresource r0 " + resource + "\n", "resource");
  if (!parsed.ok()) return parsed.errors[0].message;
  return {};
}

ExitCode write_program(const ImportFlags& flags, const alloclog::Trace& log) {
  alloclog::ProgramOptions options;
  options.resource = flags.resource;
  options.thread_blocks = flags.threads == "blocks";
  options.per_thread_default = flags.default_stream == "per_thread";
  options.blocking_streams = flags.blocking;
  options.limit = flags.limit;
  const std::string name = flags.file.substr(flags.file.rfind('/') + 1);
  for (const char c : name) options.source += static_cast<unsigned char>(c) < 0x20 ? '?' : c;
  const alloclog::Written written = alloclog::program_of(log, options);
  const bool placed = flags.resource.find(" location=") != std::string::npos ||
                      flags.resource.find(" device=") != std::string::npos;
  if (placed && written.devices > 1)
    throw CLI::ValidationError("--resource", "the log has " + std::to_string(written.devices) +
                                                 " devices: leave the place of the resource out, "
                                                 "or take one with --device");
  report(flags, log, written);
  if (written.text.size() > prop::kMaxTextBytes) {
    std::fprintf(stderr, "%s: the program is %zu bytes; replay reads %zu at most: use --limit\n",
                 flags.file.c_str(), written.text.size(), prop::kMaxTextBytes);
    return kUsage;
  }
  if (!flags.out.empty()) return write_whole(flags.out, written.text) ? kClean : kUsage;
  const bool all =
      std::fwrite(written.text.data(), 1, written.text.size(), stdout) == written.text.size();
  if (all && std::fflush(stdout) == 0) return kClean;
  std::fprintf(stderr, "granule: cannot write to standard output\n");
  return kUsage;
}

ExitCode import_log(const ImportFlags& flags, bool torch) {
  if (const std::string wrong = wrong_with(flags.resource); !wrong.empty())
    throw CLI::ValidationError("--resource", "`" + flags.resource + "`: " + wrong);
  const std::optional<std::string> text = read_whole(flags.file);
  if (!text) return kUsage;
  try {
    if (!torch) return write_program(flags, alloclog::read_rmm_csv(*text));
    const alloclog::Level level =
        flags.level == "segments" ? alloclog::Level::kSegments : alloclog::Level::kBlocks;
    return write_program(flags, alloclog::read_torch_snapshot(*text, level, flags.device));
  } catch (const alloclog::Unreadable& unreadable) {
    std::fprintf(stderr, "%s\n", alloclog::to_text(unreadable.error, flags.file).c_str());
    return kUsage;
  }
}

void add_common(CLI::App& command, ImportFlags& flags) {
  command.add_option("FILE", flags.file, "The log")->required();
  command.add_option("--out", flags.out, "The program (default: standard output)");
  command
      .add_option("--resource", flags.resource,
                  "The resource that allocates, as a program says it behind its name: vmm, \"vmm "
                  "cache=1g slack=25%\", \"pool threshold=max\", recycler")
      ->capture_default_str();
  command
      .add_option("--default-stream", flags.default_stream,
                  "What stream 0 was, which depends on how the application was compiled. A "
                  "thread's own default stream becomes a blocking stream of the program")
      ->check(CLI::IsMember({"legacy", "per_thread"}))
      ->capture_default_str();
  command.add_flag("--blocking-streams", flags.blocking,
                   "The application's own streams and the legacy stream wait for each other "
                   "(default: they are nonblocking)");
  command.add_option("--limit", flags.limit, "At most so many statements behind the setup")
      ->check(CLI::PositiveNumber);
}

constexpr const char* kUseIt =
    "\nThe program runs with `granule replay --strict`. A buffer is named for each allocation, in\n"
    "order; a free becomes a close on the stream that it was made on. What does not fit (frees of\n"
    "what was allocated before the log began, second frees, failures) is counted on stderr.\n"
    "The time of a replay grows faster than the program: some thousand statements take seconds,\n"
    "so cut a long log short (--limit).\n"
    "Exit codes: 0 written, 2 a file that cannot be read (FILE:LINE:COLUMN says where).\n";

void add_rmm(CLI::App& app) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command = app.add_subcommand("rmm-csv", "The CSV of RMM's logging_resource_adaptor");
  add_common(*command, *flags);
  command
      ->add_option("--threads", flags->threads,
                   "merged: one after the other, in the order of the log; blocks: thread blocks "
                   "that run side by side, joined where one frees what another allocated")
      ->check(CLI::IsMember({"merged", "blocks"}))
      ->capture_default_str();
  command->footer(
      std::string(
          "Reads `Thread,Time,Action,Pointer,Size,Stream` with the actions allocate,\n"
          "allocate failure and free. The order of the lines is the order of events (their\n"
          "times have no date). Such a log is written by\n"
          "  rmm.mr.LoggingResourceAdaptor(upstream, log_file_name=\"log.csv\")\n") +
      kUseIt +
      "\nExamples:\n"
      "  granule import rmm-csv log.csv.dev0 --out log.granule && granule replay --strict "
      "log.granule\n"
      "  granule import rmm-csv log.csv --resource \"pool threshold=max\" --limit 10000");
  command->callback([flags] { set_exit_code(import_log(*flags, false)); });
}

void add_torch(CLI::App& app) {
  auto flags = std::make_shared<ImportFlags>();
  CLI::App* command =
      app.add_subcommand("torch-snapshot", "A memory snapshot of PyTorch, pickle or JSON");
  add_common(*command, *flags);
  command
      ->add_option("--level", flags->level,
                   "blocks: what tensors asked of the caching allocator (alloc, free_completed); "
                   "segments: what that asked of the driver (segment_alloc, segment_map, ...)")
      ->check(CLI::IsMember({"blocks", "segments"}))
      ->capture_default_str();
  command->add_option("--device", flags->device, "Only that device's events (default: all)");
  command->footer(
      std::string(
          "Reads `device_traces` of the file that PyTorch writes:\n"
          "  torch.cuda.memory._record_memory_history()\n"
          "  ...\n"
          "  torch.cuda.memory._dump_snapshot(\"snapshot.pickle\")\n"
          "Nothing in the pickle is executed: an opcode that names or calls anything is refused.\n"
          "The same as JSON: json.dump(torch.cuda.memory._snapshot(), open(FILE, \"w\")).\n"
          "Several devices become device 0, 1, ... of the program, in the order of `time_us`.\n") +
      kUseIt +
      "\nExample:\n"
      "  granule import torch-snapshot snapshot.pickle --resource \"vmm cache=64g\" --out "
      "t.granule");
  command->callback([flags] { set_exit_code(import_log(*flags, true)); });
}

void add_import(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("import", "Turn an application's allocation log into a program");
  command->require_subcommand(1);
  add_rmm(*command);
  add_torch(*command);
}

const Command command(75, add_import);

}  // namespace
}  // namespace granule::cli
