// Threads behind the sync seam.
#include <granule/backend_api/sync.hpp>

#include <new>
#include <system_error>
#include <utility>

namespace granule {

bool SeamThread::start(void (*body)(void*), void* argument) noexcept {
  if (hooks_) {
    number_ = hooks_->start_thread(body, argument);
    return number_ != 0;
  }
  try {
    thread_ = std::thread(body, argument);
  } catch (const std::system_error&) {
    return false;
  } catch (const std::bad_alloc&) {
    return false;
  }
  return true;
}

void SeamThread::join() noexcept {
  if (number_ != 0) hooks_->join_thread(std::exchange(number_, 0));
  if (thread_.joinable()) thread_.join();
}

}  // namespace granule
