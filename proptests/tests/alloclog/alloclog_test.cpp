// Allocation logs as programs: what is read, what is refused and where, and that the result runs.
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/rng.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

#include "alloclog/alloclog.hpp"
#include "alloclog/program_of.hpp"
#include "pickles.hpp"

namespace granule::alloclog {
namespace {

constexpr std::string_view kHeader = "Thread,Time,Action,Pointer,Size,Stream\n";

/// Two threads, five streams, a pointer used again, a failure, a free on another stream.
const std::string kLog = std::string(kHeader) +
                         "71,10:00:00.000001,allocate,0x7f0000000000,1048576,0\n"
                         "71,10:00:00.000002,allocate,0x7f0000200000,256,0x55d000000010\n"
                         "72,10:00:00.000003,allocate,0x7f0000400000,5243136,0x2\n"
                         "72,10:00:00.000004,allocate failure,(nil),1099511627776,0x1\n"
                         "71,10:00:00.000005,free,0x7f0000000000,1048576,0x55d000000020\n"
                         "71,10:00:00.000006,allocate,0x7f0000000000,4096,0x1\n"
                         "71,10:00:00.000007,allocate,(nil),0,0x0\n"
                         "72,10:00:00.000008,free,0x7f0000200000,256,0x55d000000010\n"
                         "71,10:00:00.000009,free,(nil),0,0x0\n"
                         "72,10:00:00.000010,free,0x7f0000400000,5243136,0x2\n";

std::uint64_t count(const Written& written, Oddity oddity) {
  return written.oddities[static_cast<std::size_t>(oddity)];
}

/// Parses and runs the program; the failure, the first parse error, or nothing.
std::string wrong_with(const std::string& text) {
  const prop::ParseResult parsed = prop::parse(text, "log.granule");
  if (!parsed.ok()) return prop::to_text(parsed.errors[0]);
  prop::RunOptions strict;
  strict.strict = true;
  for (const prop::Program& program : parsed.document.programs) {
    const prop::RunReport report = prop::run(program, strict);
    if (report.failure) return prop::describe(program, *report.failure);
    if (report.status != prop::RunStatus::kClean) return "not run: " + report.unmet;
  }
  return {};
}

std::string refused(const std::string& log) {
  try {
    read_rmm_csv(log);
  } catch (const Unreadable& unreadable) {
    return to_text(unreadable.error, "f");
  }
  return "read";
}

std::string refused_snapshot(std::string_view bytes) {
  try {
    read_torch_snapshot(bytes, Level::kBlocks);
  } catch (const Unreadable& unreadable) {
    return to_text(unreadable.error, "f");
  }
  return "read";
}

TEST(RmmCsv, BecomesAProgramThatRunsStrictly) {
  const Written written = program_of(read_rmm_csv(kLog), {});
  EXPECT_EQ(written.text,
            "granule 1\n# from \nneeds memory=1GiB\n"
            "stream legacy0 legacy\nstream s1\nstream default_of_t1_0 blocking\nstream s2\n"
            "resource r0 vmm\n"
            "a1 = allocate r0 1MiB on legacy0\na2 = allocate r0 256 on s1\n"
            "a3 = allocate r0 5243136 on default_of_t1_0\n"
            "# here an allocation of 1024GiB failed\n"
            "close a1 on s2\na4 = allocate r0 4KiB on legacy0\na5 = allocate r0 0 on legacy0\n"
            "close a2 on s1\nclose a5 on legacy0\nclose a3 on default_of_t1_0\n");
  EXPECT_EQ(wrong_with(written.text), "");
  EXPECT_EQ(written.allocations, 5u);
  EXPECT_EQ(written.frees, 4u);
  EXPECT_EQ(written.live, 1u);
  EXPECT_EQ(written.live_bytes, 1048576u + 256 + 5243136);
  EXPECT_EQ(count(written, Oddity::kFailure), 1u);
}

TEST(RmmCsv, RunsOnOtherResourcesAndWithThreadBlocks) {
  for (const char* resource : {"vmm cache=1g free=deferred", "pool threshold=max", "recycler"})
    for (const bool blocks : {false, true}) {
      ProgramOptions options;
      options.resource = resource;
      options.thread_blocks = blocks;
      const Written written = program_of(read_rmm_csv(kLog), options);
      EXPECT_EQ(wrong_with(written.text), "") << written.text;
      EXPECT_EQ(count(written, Oddity::kEmpty), resource[0] == 'v' ? 0u : 1u) << resource;
    }
}

TEST(RmmCsv, BlocksEndWhereAThreadFreesWhatAnotherAllocated) {
  ProgramOptions options;
  options.thread_blocks = true;
  options.blocking_streams = true;
  options.per_thread_default = true;
  const std::string text = program_of(read_rmm_csv(kLog), options).text;
  // Thread 72 frees a buffer of thread 71's: between them stands a statement of no thread.
  EXPECT_NE(text.find("}\nmark\nthread t0 {\n  close a5 on default_of_t0_0\n}\nthread t1 {\n"
                      "  close a2 on s1\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("stream s1 blocking\n"), std::string::npos) << text;
  EXPECT_NE(text.find("a1 = allocate r0 1MiB on default_of_t0_0\n"), std::string::npos) << text;
}

TEST(RmmCsv, CountsWhatDoesNotFit) {
  const std::string log = std::string(kHeader) +
                          "1,t,free,0x100,8,0x1\n"      // allocated before the log begins
                          "1,t,allocate,0x200,8,0x1\n"  //
                          "1,t,free,0x200,16,0x1\n"     // another size
                          "1,t,free,0x200,8,0x1\n"      // a second time
                          "1,t,allocate,0x300,8,0x1\n"  //
                          "1,t,allocate,0x300,8,0x1\n"  // no free between
                          "1,t,free,(nil),0,0x1\n";     // legal
  const Written written = program_of(read_rmm_csv(log), {});
  EXPECT_EQ(count(written, Oddity::kUnknownFree), 1u);
  EXPECT_EQ(count(written, Oddity::kOtherSize), 1u);
  EXPECT_EQ(count(written, Oddity::kDoubleFree), 1u);
  EXPECT_EQ(count(written, Oddity::kNoFree), 1u);
  EXPECT_EQ(written.frees, 2u);  // of 0x200, and of the first buffer at 0x300
  ASSERT_EQ(written.examples.size(), 4u);
  EXPECT_EQ(written.examples[2], "line 5: a second free; the first is line 4");
  EXPECT_EQ(wrong_with(written.text), "") << written.text;
}

TEST(RmmCsv, TheLimitCountsStatementsAndSaysWhatIsLeft) {
  ProgramOptions options;
  options.limit = 3;
  const Written written = program_of(read_rmm_csv(kLog), options);
  EXPECT_EQ(written.allocations + written.frees, 3u);
  EXPECT_EQ(written.left_out, 7u);
  EXPECT_EQ(wrong_with(written.text), "");
}

TEST(RmmCsv, ErrorsNameTheLineAndTheColumn) {
  const std::string first = std::string(kHeader) + "1,t,allocate,0x100,8,0x1\n";
  EXPECT_EQ(refused(""),
            "f:1:1: expected the header `Thread,Time,Action,Pointer,Size,Stream`, "
            "found an empty line");
  EXPECT_EQ(refused("Thread,Time,Action,Pointer,Size\n"),
            "f:1:1: expected the header `Thread,Time,Action,Pointer,Size,Stream`, found "
            "`Thread,Time,Action,Pointer,Size`, which has no column Stream");
  EXPECT_EQ(refused(first + "1,t,allocat,0x100,8,0x1\n"),
            "f:3:5: expected `allocate`, `allocate failure` or `free`, found `allocat`");
  EXPECT_EQ(refused(first + "1,t,allocate,xyz,8,0x1\n"),
            "f:3:14: expected an address such as 0x7f0000000000, found `xyz`");
  EXPECT_EQ(refused(first + "1,t,allocate,0x100,-8,0x1\n"),
            "f:3:20: expected a size in bytes, found `-8`");
  EXPECT_EQ(refused(first + "1,t,allocate,0x100,18446744073709551616,0x1\n"),
            "f:3:20: expected a size in bytes, found `18446744073709551616`");
  EXPECT_EQ(refused(first + "1,t,allocate,0x100,8\n"), "f:3:21: expected 6 columns, found 5");
  EXPECT_EQ(refused(first + "1,t,allocate,0x100,8,0x1,9\n"),
            "f:3:26: expected the line to end behind 6 columns, found `9`");
}

TEST(RmmCsv, ALastLineThatIsCutOffIsSaidAndLeftOut) {
  const Trace trace = read_rmm_csv(kLog + "71,10:00:00.000011,allo");
  EXPECT_EQ(trace.events.size(), 10u);
  ASSERT_EQ(trace.notes.size(), 1u);
  EXPECT_NE(trace.notes[0].find("the last line (12) is cut off"), std::string::npos);
}

TEST(RmmCsv, ColumnsStandWhereTheHeaderSaysAndLinesMayEndInCarriageReturns) {
  const Trace trace = read_rmm_csv("Action,Size,Pointer,More,Stream\r\nallocate,8,0x100,x,0x2\r\n");
  ASSERT_EQ(trace.events.size(), 1u);
  EXPECT_EQ(trace.events[0].size, 8u);
  EXPECT_EQ(trace.events[0].pointer, 0x100u);
  EXPECT_EQ(trace.events[0].stream, 2u);
}

TEST(RmmCsv, MoreMemoryThanADeviceHasIsNoAllocation) {
  std::string log(kHeader);
  for (int i = 1; i <= 40; ++i)
    log += "1,t,allocate,0x" + std::to_string(i) + ",70368744177664,0x1\n";  // 64 TiB
  log += "1,t,allocate,0xffff,18446744073709551615,0x1\n";
  const Written written = program_of(read_rmm_csv(log), {});
  EXPECT_EQ(written.allocations, 16u);  // a petabyte
  EXPECT_EQ(count(written, Oddity::kFailure), 25u);
  EXPECT_TRUE(prop::parse(written.text, "f").ok());
}

TEST(TorchSnapshot, EveryProtocolAndJsonGiveTheSame) {
  const std::string json = program_of(read_torch_snapshot(kJson, Level::kBlocks), {}).text;
  EXPECT_EQ(wrong_with(json), "") << json;
  EXPECT_NE(json.find("a1 = allocate r0 512 on legacy0\n"), std::string::npos) << json;
  EXPECT_NE(json.find("close a1 on legacy0\n"), std::string::npos) << json;
  EXPECT_NE(json.find("stream s1 device=1\n"), std::string::npos) << json;
  EXPECT_NE(json.find("resource r1 vmm location=device:1\n"), std::string::npos) << json;
  for (const std::string_view pickle : {kPickle2, kPickle3, kPickle4, kPickle5})
    EXPECT_EQ(program_of(read_torch_snapshot(pickle, Level::kBlocks), {}).text, json);
}

TEST(TorchSnapshot, DevicesRunInOrderOfTime) {
  const Trace trace = read_torch_snapshot(kJson, Level::kBlocks);
  std::string order;
  for (const Event& event : trace.events)
    order += std::to_string(event.device) +
             (event.action == Action::kAllocate ? "a"
              : event.action == Action::kFree   ? "f"
                                                : "x") +
             " ";
  EXPECT_EQ(order, "0f 0a 1a 0f 1x ");
  EXPECT_EQ(read_torch_snapshot(kJson, Level::kBlocks, 1).events.size(), 2u);
}

TEST(TorchSnapshot, SegmentsAreWhatTheDriverWasAsked) {
  const Written written = program_of(read_torch_snapshot(kJson, Level::kSegments), {});
  EXPECT_NE(written.text.find("a1 = allocate r0 2MiB"), std::string::npos) << written.text;
  EXPECT_EQ(wrong_with(written.text), "");
  // Mapped in three pieces; unmapped two at once, then a part of the third.
  const std::string pieces = R"({"device_traces":[[
    {"action":"segment_map","addr":4096,"size":4096,"stream":0},
    {"action":"segment_map","addr":8192,"size":4096,"stream":0},
    {"action":"segment_map","addr":12288,"size":8192,"stream":0},
    {"action":"segment_unmap","addr":4096,"size":8192,"stream":0},
    {"action":"segment_unmap","addr":12288,"size":4096,"stream":0},
    {"action":"segment_unmap","addr":16384,"size":4096,"stream":0}]]})";
  const Trace trace = read_torch_snapshot(pieces, Level::kSegments);
  EXPECT_EQ(trace.events.size(), 5u);
  ASSERT_EQ(trace.notes.size(), 1u);
  EXPECT_NE(trace.notes[0].find("unmaps of a part"), std::string::npos);
  EXPECT_NE(trace.notes[0].find(": 2"), std::string::npos) << trace.notes[0];
}

TEST(TorchSnapshot, NothingInAPickleIsCalled) {
  using namespace std::string_view_literals;
  const std::string system = refused_snapshot(
      "\x80\x02"
      "cposix\nsystem\n"
      "X\x02\x00\x00\x00id\x85R."sv);
  EXPECT_EQ(system.substr(0, 60), "f: byte 2: expected plain data, found the opcode GLOBAL, whi");
  for (const std::string_view op :
       {"\x93"sv, "R"sv, "b"sv, "i"sv, "o"sv, "\x81"sv, "\x92"sv, "Q"sv, "\x82"sv})
    EXPECT_NE(refused_snapshot("\x80\x04NN" + std::string(op)).find("byte 4: expected plain data"),
              std::string::npos)
        << static_cast<int>(op[0]);
}

TEST(TorchSnapshot, ErrorsNameThePlace) {
  using namespace std::string_view_literals;
  EXPECT_EQ(refused_snapshot("abc").substr(0, 30), "f: byte 0: expected a pickle (");
  EXPECT_EQ(refused_snapshot("\x80\x06."sv),
            "f: byte 0: expected a pickle of protocol 2 to 5, found 6");
  EXPECT_EQ(refused_snapshot("\x80\x02X\xff\xff\xff\xff"sv),
            "f: byte 2: expected 4294967295 more bytes, found the end of the file");
  EXPECT_EQ(refused_snapshot("\x80\x02h\x07."sv),
            "f: byte 2: expected a number that the memo holds, found 7");
  EXPECT_EQ(refused_snapshot("\x80\x02]}N"sv
                             "Ns."sv)
                .substr(0, 40),
            "f: expected a dict with `device_traces`,");
  EXPECT_EQ(refused_snapshot("{\"a\":\n [1,}").substr(0, 22), "f:2:5: expected JSON: ");
  EXPECT_EQ(refused_snapshot(R"({"device_traces":[[{"action":"alloc","addr":1}]]})"),
            "f: device_traces[0][0]: expected `size`, which is not there");
  EXPECT_EQ(refused_snapshot(R"({"device_traces":[[{"action":"alloc","addr":-1,"size":1}]]})"),
            "f: device_traces[0][0]: expected `addr` to be a number from 0 to 2^64 - 1");
  EXPECT_EQ(refused_snapshot(R"({"device_traces":[[7]]})"),
            "f: device_traces[0][0]: expected an event: a dict with a text `action`");
}

TEST(TorchSnapshot, AListThatHoldsItselfAndOneNamedOftenDoNoHarm) {
  using namespace std::string_view_literals;
  // d = {"device_traces": l}, l = [l]
  const std::string self = std::string("\x80\x02}X\x0d\x00\x00\x00"sv) + "device_traces" +
                           std::string(
                               "]q\x01h\x01"
                               "as."sv);
  EXPECT_NE(refused_snapshot(self).find("expected an event"), std::string::npos);
  // 101 times a list of 20001 events, all the same one.
  std::string often =
      std::string("\x80\x02}X\x0d\x00\x00\x00"sv) + "device_traces" + std::string("](]q\x01("sv);
  often += std::string("}X\x06\x00\x00\x00"sv) + "action" + std::string("X\x08\x00\x00\x00"sv) +
           "snapshotsq\x02";
  for (int i = 0; i < 20000; ++i) often += "h\x02";
  often += "e";
  for (int i = 0; i < 100; ++i) often += "h\x01";
  often += "es.";
  EXPECT_EQ(refused_snapshot(often), "f: device_traces[2]: more events than the file has bytes");
}

/// Some bytes changed, taken out, put in or doubled.
std::string mutated(std::string text, prop::Rng& rng) {
  const std::uint64_t changes = 1 + rng.below(8);
  for (std::uint64_t i = 0; i < changes && !text.empty(); ++i) {
    const std::size_t at = static_cast<std::size_t>(rng.below(text.size()));
    switch (rng.below(4)) {
      case 0:
        text[at] = static_cast<char>(rng.below(256));
        break;
      case 1:
        text.erase(at, static_cast<std::size_t>(1 + rng.below(9)));
        break;
      case 2:
        text.insert(at, 1, static_cast<char>(rng.below(256)));
        break;
      default:
        text.insert(at, text.substr(static_cast<std::size_t>(rng.below(text.size())),
                                    static_cast<std::size_t>(rng.below(40))));
    }
  }
  return text;
}

TEST(AllocLog, AnyBytesAreReadOrRefused) {
  prop::Rng rng(7, 0);
  std::array<std::uint64_t, 2> seen{};
  const std::vector<std::string> seeds{kLog, std::string(kPickle2), std::string(kPickle4),
                                       std::string(kJson)};
  const auto attempt = [&](const std::string& text, bool csv) {
    try {
      const Trace trace =
          csv ? read_rmm_csv(text)
              : read_torch_snapshot(text, rng.below(2) == 0 ? Level::kBlocks : Level::kSegments);
      ProgramOptions options;
      options.thread_blocks = rng.below(2) == 0;
      const Written written = program_of(trace, options);
      const prop::ParseResult parsed = prop::parse(written.text, "f");
      ASSERT_TRUE(parsed.ok()) << prop::to_text(parsed.errors[0]) << "\n" << written.text;
      ++seen[0];
    } catch (const Unreadable& unreadable) {
      EXPECT_FALSE(unreadable.error.message.empty());
      ++seen[1];
    }
  };
  for (int i = 0; i < 4000; ++i)
    for (std::size_t s = 0; s < seeds.size(); ++s) attempt(mutated(seeds[s], rng), s == 0);
  for (int i = 0; i < 4000; ++i) {
    std::string bytes(static_cast<std::size_t>(rng.below(64)), 0);
    for (char& c : bytes) c = static_cast<char>(rng.below(256));
    attempt(i % 2 == 0 ? "\x80" + bytes : bytes, false);
    attempt(std::string(kHeader) + bytes, true);
  }
  EXPECT_GT(seen[0], 1000u);
  EXPECT_GT(seen[1], 1000u);
}

}  // namespace
}  // namespace granule::alloclog
