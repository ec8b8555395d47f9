// What an application's allocation log says, whichever tool wrote it: events in order.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace granule::alloclog {

enum class Action : std::uint8_t { kAllocate, kFailed, kFree };

/// One line of a log.
struct Event {
  Action action = Action::kAllocate;
  std::uint32_t device = 0;   // as the log counts them
  std::uint32_t thread = 0;   // in order of appearance, from 0
  std::uint64_t pointer = 0;  // 0: null
  std::uint64_t size = 0;     // bytes
  std::uint64_t stream = 0;   // a handle; 0: default stream, 1: legacy, 2: per thread
  std::uint64_t place = 0;    // line of the file, or number of the event on its device
};

/// A log that could be read.
struct Trace {
  std::vector<Event> events;
  std::string place_name = "line";  // what Event::place counts
  /// What the reader left out or took for granted, a sentence each, for the user.
  std::vector<std::string> notes;
};

/// Where a log is not what it should be.
struct ReadError {
  static constexpr std::uint64_t kNoOffset = UINT64_MAX;
  std::uint64_t line = 0;            // from 1; 0: the file has no lines
  std::uint64_t column = 0;          // from 1, in bytes
  std::uint64_t offset = kNoOffset;  // from 0, of a file without lines
  std::string message;               // what was expected, and what stood there
};
/// FILE:LINE:COLUMN: MESSAGE, FILE: byte OFFSET: MESSAGE or FILE: MESSAGE.
std::string to_text(const ReadError& error, const std::string& file);

/// Thrown by the readers below, and by nothing else.
struct Unreadable {
  ReadError error;
};

/// Reads a log of RMM's logging_resource_adaptor: columns Thread, Time, Action, Pointer, Size,
/// Stream as its first line orders them. Accepts any bytes; throws Unreadable or std::bad_alloc.
Trace read_rmm_csv(std::string_view text);

/// What of a PyTorch snapshot counts as an allocation.
enum class Level : std::uint8_t {
  kBlocks,    // what tensors asked of the caching allocator
  kSegments,  // what the caching allocator asked of the driver
};

/// Reads what torch.cuda.memory._dump_snapshot wrote (a pickle of plain data; nothing in it is
/// executed), or the same as JSON. `device`: only that one. Accepts any bytes; throws Unreadable or
/// std::bad_alloc. The text must outlive the call only.
Trace read_torch_snapshot(std::string_view text, Level level,
                          std::optional<std::uint32_t> device = std::nullopt);

}  // namespace granule::alloclog
