// Marks a page that the kernel empties in a forked child.
#include "own_process.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>

namespace granule::libcuda {
namespace {

constexpr std::size_t kPage = 4096;

}  // namespace

OwnProcess::OwnProcess() noexcept : pid_(static_cast<int>(getpid())) {
  void* const page =
      mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
#ifdef MADV_WIPEONFORK
  if (madvise(page, kPage, MADV_WIPEONFORK) == 0) {
    *static_cast<unsigned char*>(page) = 1;
    mark_ = static_cast<unsigned char*>(page);
    return;
  }
#endif
  munmap(page, kPage);
}

OwnProcess::~OwnProcess() {
  if (mark_ != nullptr) munmap(const_cast<unsigned char*>(mark_), kPage);
}

bool OwnProcess::is_same_pid() const noexcept { return static_cast<int>(getpid()) == pid_; }

}  // namespace granule::libcuda
