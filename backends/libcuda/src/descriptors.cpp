// Each exported descriptor is an empty file in memory; its inode tells it from others.
#include "descriptors.hpp"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <mutex>
#include <vector>

#include "entry.hpp"

namespace granule::libcuda {
namespace {

struct Open {
  int descriptor = -1;
  dev_t device = 0;
  ino_t inode = 0;
  Descriptor driver;
};

std::mutex mutex;
std::atomic<bool> any{false};
std::vector<Open>& all() {
  static auto* const list = new std::vector<Open>;
  return *list;
}

bool is_same(int descriptor, const Open& open) {
  struct stat facts {};
  return fstat(descriptor, &facts) == 0 && facts.st_dev == open.device &&
         facts.st_ino == open.inode;
}

/// A descriptor of the process that is still open on the file, or -1.
int find_open(const Open& open) {
  if (is_same(open.descriptor, open)) return open.descriptor;
  DIR* folder = opendir("/proc/self/fd");
  if (folder == nullptr) return -1;
  int found = -1;
  while (const dirent* entry = readdir(folder)) {
    const int descriptor = std::atoi(entry->d_name);
    if (entry->d_name[0] < '0' || entry->d_name[0] > '9' || !is_same(descriptor, open)) continue;
    found = descriptor;
    break;
  }
  closedir(folder);
  return found;
}

}  // namespace

int open_descriptor(Descriptor driver) {
  Open open;
  open.driver = driver;
  // A real driver's is real already.
  const bool real = Session::get().options().watch;
  open.descriptor = real ? driver.value : memfd_create("granule-export", MFD_CLOEXEC);
  struct stat facts {};
  if (open.descriptor < 0 || fstat(open.descriptor, &facts) != 0) return -1;
  open.device = facts.st_dev;
  open.inode = facts.st_ino;
  const std::lock_guard lock(mutex);
  all().push_back(open);
  any = true;
  return open.descriptor;
}

Descriptor model_descriptor(int descriptor) {
  if (Session::get().options().watch) return Descriptor{descriptor};
  const std::lock_guard lock(mutex);
  for (const Open& open : all())
    if (is_same(descriptor, open)) return open.driver;
  return Descriptor{-1};
}

void look_for_closed_descriptors() {
  if (!any.load(std::memory_order_relaxed)) return;
  std::vector<Descriptor> closed;
  {
    const std::lock_guard lock(mutex);
    for (auto it = all().begin(); it != all().end();) {
      it->descriptor = find_open(*it);
      if (it->descriptor >= 0) {
        ++it;
        continue;
      }
      closed.push_back(it->driver);
      it = all().erase(it);
    }
    any = !all().empty();
  }
  for (const Descriptor descriptor : closed) {
    CloseDescriptor call;
    call.descriptor = descriptor;
    // A real one is closed already.
    Session::get().options().watch ? Session::get().drop(call) : static_cast<void>(submit(call));
  }
}

}  // namespace granule::libcuda
