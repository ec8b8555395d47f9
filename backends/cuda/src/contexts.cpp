// Per-context module, pinned cells, buffers and patterns.
#include "contexts.hpp"

#include <cstring>

namespace granule::cuda {
namespace {

constexpr std::uint64_t kCellsPerBlock = 256;
constexpr std::uint64_t kSmallestBuffer = 64 << 10;

std::uint64_t buffer_class(std::uint64_t size) {
  std::uint64_t capacity = kSmallestBuffer;
  while (capacity < size && capacity < (std::uint64_t{1} << 62)) capacity *= 2;
  return capacity;
}

}  // namespace

PushedContext::PushedContext(const Driver& driver, abi::Context context) : driver_(driver) {
  abi::Context current = nullptr;
  status_ = invoke(driver->cuCtxGetCurrent, &current);
  if (status_ != DriverStatus::kSuccess || current == context) return;
  status_ = invoke(driver->cuCtxPushCurrent, context);
  pushed_ = status_ == DriverStatus::kSuccess;
}

PushedContext::~PushedContext() {
  if (!pushed_) return;
  abi::Context popped = nullptr;
  invoke(driver_->cuCtxPopCurrent, &popped);
}

RelaxedCapture::RelaxedCapture(const Driver& driver) : driver_(driver) {
  exchanged_ = invoke(driver->cuThreadExchangeStreamCaptureMode, &mode_) == DriverStatus::kSuccess;
}

RelaxedCapture::~RelaxedCapture() {
  if (exchanged_) invoke(driver_->cuThreadExchangeStreamCaptureMode, &mode_);
}

DriverStatus ContextState::load_module() {
  const PushedContext pushed(driver_, context_);
  if (pushed.status() != DriverStatus::kSuccess) return pushed.status();
  const RelaxedCapture relaxed(driver_);
  abi::Module module = nullptr;
  DriverStatus status =
      invoke(driver_->cuModuleLoadData, &module, static_cast<const void*>(kKernelModule));
  if (status != DriverStatus::kSuccess) return status;
  for (const KernelKind kind :
       {KernelKind::kSpin, KernelKind::kWrite, KernelKind::kRead, KernelKind::kTouch}) {
    status = invoke(driver_->cuModuleGetFunction, &functions_[static_cast<int>(kind)], module,
                    entry_point(kind));
    if (status != DriverStatus::kSuccess) {
      invoke(driver_->cuModuleUnload, module);
      return status;
    }
    // A function that is loaded by its first launch would wait there for held streams.
    invoke(driver_->cuFuncLoad, functions_[static_cast<int>(kind)]);
  }
  module_ = module;
  return DriverStatus::kSuccess;
}

DriverStatus ContextState::function(KernelKind kind, abi::Function* out) {
  const std::lock_guard lock(mutex_);
  if (module_ == nullptr) {
    const DriverStatus status = load_module();
    if (status != DriverStatus::kSuccess) return status;
  }
  const auto index = static_cast<std::size_t>(kind);
  if (index >= 4) return DriverStatus::kInvalidValue;
  *out = functions_[index];
  return DriverStatus::kSuccess;
}

DriverStatus ContextState::prepare() {
  abi::Function function_of_any_kernel = nullptr;
  return function(KernelKind::kSpin, &function_of_any_kernel);
}

DriverStatus ContextState::pinned(std::uint64_t size, void** out) {
  const PushedContext pushed(driver_, context_);
  if (pushed.status() != DriverStatus::kSuccess) return pushed.status();
  const RelaxedCapture relaxed(driver_);
  blocks_.reserve(blocks_.size() + 1);
  const DriverStatus status = invoke(driver_->cuMemHostAlloc, out, static_cast<std::size_t>(size),
                                     abi::kHostAllocPortable | abi::kHostAllocDeviceMap);
  if (status == DriverStatus::kSuccess) blocks_.push_back(*out);
  return status;
}

DriverStatus ContextState::take_cell(std::uint32_t** out) {
  const std::lock_guard lock(mutex_);
  if (free_cells_.empty()) {
    void* block = nullptr;
    const DriverStatus status = pinned(kCellsPerBlock * kCellWords * sizeof(std::uint32_t), &block);
    if (status != DriverStatus::kSuccess) return status;
    auto* words = static_cast<std::uint32_t*>(block);
    for (std::uint64_t i = kCellsPerBlock; i-- > 0;) free_cells_.push_back(words + i * kCellWords);
  }
  *out = free_cells_.back();
  free_cells_.pop_back();
  std::memset(*out, 0, kCellWords * sizeof(std::uint32_t));
  return DriverStatus::kSuccess;
}

void ContextState::put_cell(std::uint32_t* cell) {
  const std::lock_guard lock(mutex_);
  free_cells_.push_back(cell);
}

DriverStatus ContextState::take_buffer(std::uint64_t size, std::byte** out,
                                       std::uint64_t* capacity) {
  const std::lock_guard lock(mutex_);
  *capacity = buffer_class(size);
  const auto found = free_buffers_.find(*capacity);
  if (found != free_buffers_.end()) {
    *out = found->second;
    free_buffers_.erase(found);
    return DriverStatus::kSuccess;
  }
  void* block = nullptr;
  const DriverStatus status = pinned(*capacity, &block);
  *out = static_cast<std::byte*>(block);
  return status;
}

void ContextState::put_buffer(std::byte* buffer, std::uint64_t capacity) {
  const std::lock_guard lock(mutex_);
  free_buffers_.emplace(capacity, buffer);
}

DriverStatus ContextState::pattern(std::uint8_t value, std::uint64_t size, const std::byte** out) {
  const std::lock_guard lock(mutex_);
  const auto found = patterns_.find(value);
  if (found != patterns_.end() && found->second.size >= size) {
    *out = found->second.bytes;
    return DriverStatus::kSuccess;
  }
  // A smaller one stays allocated: copies from it may be queued.
  const std::uint64_t capacity = buffer_class(size);
  void* block = nullptr;
  const DriverStatus status = pinned(capacity, &block);
  if (status != DriverStatus::kSuccess) return status;
  std::memset(block, value, static_cast<std::size_t>(capacity));
  *out = static_cast<const std::byte*>(block);
  patterns_.insert_or_assign(value, Pattern{*out, capacity});
  return DriverStatus::kSuccess;
}

void ContextState::release() noexcept {
  if (gone()) return;
  const PushedContext pushed(driver_, context_);
  if (pushed.status() != DriverStatus::kSuccess) return;
  const RelaxedCapture relaxed(driver_);
  for (void* block : blocks_) invoke(driver_->cuMemFreeHost, block);
  if (module_ != nullptr) invoke(driver_->cuModuleUnload, module_);
  set_gone(true);
}

DriverStatus Contexts::of_stream(abi::Stream stream, abi::Context* out) const {
  constexpr std::uintptr_t kLastDefaultStream = 2;
  *out = nullptr;
  if (reinterpret_cast<std::uintptr_t>(stream) > kLastDefaultStream) {
    return invoke(driver_->cuStreamGetCtx, stream, out);
  }
  const DriverStatus status = invoke(driver_->cuCtxGetCurrent, out);
  if (status != DriverStatus::kSuccess) return status;
  return *out != nullptr ? DriverStatus::kSuccess : DriverStatus::kInvalidContext;
}

std::shared_ptr<ContextState> Contexts::state(abi::Context context) {
  const std::lock_guard lock(mutex_);
  std::shared_ptr<ContextState>& state = states_[context];
  if (state == nullptr) state = std::make_shared<ContextState>(driver_, context);
  return state;
}

DriverStatus Contexts::state_of(abi::Stream stream, std::shared_ptr<ContextState>* out) {
  abi::Context context = nullptr;
  const DriverStatus status = of_stream(stream, &context);
  if (status == DriverStatus::kSuccess) *out = state(context);
  return status;
}

void Contexts::leaving(abi::Context context) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(context);
  if (found != states_.end()) found->second->set_gone(true);
}

void Contexts::staying(abi::Context context) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(context);
  if (found != states_.end()) found->second->set_gone(false);
}

void Contexts::forget(abi::Context context) {
  const std::lock_guard lock(mutex_);
  const auto found = states_.find(context);
  if (found == states_.end()) return;
  found->second->set_gone(true);
  states_.erase(found);
}

void Contexts::release_all() noexcept {
  const std::lock_guard lock(mutex_);
  for (auto& [context, state] : states_) state->release();
  states_.clear();
}

}  // namespace granule::cuda
