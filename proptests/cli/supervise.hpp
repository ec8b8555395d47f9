// Running work in a child process, so that a crash is a result rather than the end.
#pragma once

#include <cstddef>
#include <functional>

namespace granule::cli {

/// Runs `work` in a forked child and returns its exit code; a child that dies by a signal gives
/// 128 plus the signal's number. Interrupts from the terminal are left to the child. Where no child
/// can be made, the work is done here. Call it before any thread is started.
int in_child(const std::function<int()>& work);

/// True if `code` of in_child stands for a death by a signal.
inline bool is_crash(int code) { return code > 128; }

/// Zeroed memory that a child shares with its parent; null if there is none to be had.
void* shared_memory(std::size_t bytes);

}  // namespace granule::cli
