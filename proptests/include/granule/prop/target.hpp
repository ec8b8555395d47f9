// The allocator under test as the interpreter sees it: the core behind it by default, a resource
// with a planted defect where a zoo wants one. Operations that a target lacks are `unsupported`.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <granule/buffer.hpp>
#include <granule/resource.hpp>
#include <granule/stream.hpp>

namespace granule::prop {

/// A buffer of a target. Destroying it while it is open is the destructor's path.
class TargetBuffer {
 public:
  virtual ~TargetBuffer() = default;
  virtual DevicePtr ptr() const = 0;
  virtual std::uint64_t size() const = 0;
  virtual bool is_closed() const = 0;
  virtual bool is_suspended() const { return false; }
};

/// One more holder of a range.
class TargetHolder {
 public:
  virtual ~TargetHolder() = default;
  virtual Status drop() = 0;
};

/// Open descriptors of an exported buffer.
class TargetBundle {
 public:
  virtual ~TargetBundle() = default;
  virtual Status close() = 0;
};

struct TargetGrowth {
  std::unique_ptr<TargetBuffer> buffer;
  Placement placement = Placement::kAlias;
};

/// A range of addresses as a target tells who has it, for pictures.
struct TargetRange {
  enum class State : std::uint8_t { kOpen, kRetired, kParked, kIdle, kQuarantined };
  DevicePtr base;
  std::uint64_t size = 0;       // bytes that its buffer shows, or showed
  std::uint64_t committed = 0;  // bytes of its mappings, from `base` on
  State state = State::kOpen;
  bool suspended = false;
};

/// What the options of a `resource` line come to, for all kinds.
struct TargetOptions {
  enum class Kind : std::uint8_t { kVmm, kPool, kRecycler };
  Kind kind = Kind::kVmm;
  VmmOptions vmm;             // kVmm
  DeviceId device;            // kPool, kRecycler
  bool default_pool = false;  // kPool: binds the device's default pool
  bool has_threshold = false;
  std::uint64_t threshold = 0;
  std::uint64_t max_size = 0;      // kPool: 0 is no bound
  std::uint64_t limit = kNoLimit;  // kRecycler
};

/// A resource under test.
class TargetResource {
 public:
  using Buffers = std::span<TargetBuffer* const>;
  virtual ~TargetResource() = default;

  virtual Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                         const AllocateOptions& options) = 0;
  virtual Status close(TargetBuffer& buffer, const Stream* stream) = 0;
  virtual Status drop(TargetBuffer& buffer) = 0;

  virtual Result<TargetGrowth> grow(TargetBuffer& buffer, std::uint64_t size,
                                    const GrowOptions& options);
  virtual Result<ResizeResult> resize(TargetBuffer& buffer, std::uint64_t size,
                                      const GrowOptions& options);
  virtual Result<std::uint64_t> shrink(TargetBuffer& buffer, std::uint64_t size);
  virtual Result<bool> could_extend(TargetBuffer& buffer);
  virtual Status used_on(TargetBuffer& buffer, const Stream& stream);
  virtual Result<std::unique_ptr<TargetHolder>> hold(TargetBuffer& buffer);
  virtual Status suspend(Buffers buffers, bool backup);
  virtual Status resume(Buffers buffers);
  virtual Result<std::unique_ptr<TargetBundle>> export_buffer(TargetBuffer& buffer);
  virtual Result<std::unique_ptr<TargetBuffer>> import_buffer(const Stream& stream,
                                                              TargetBundle& bundle);
  virtual Status grant(DeviceId device, Access access);
  virtual Status peer(DeviceId device, Access access);
  virtual Status trim(std::uint64_t keep);
  virtual Status collect();
  virtual Status forget(const Stream& stream);
  virtual Status set(std::string_view key, std::uint64_t value);
  virtual Status reset_high();

  /// The figure that `expect stat` names, or nothing if the target keeps none of that name.
  virtual std::optional<std::uint64_t> stat(std::string_view field) const = 0;
  /// Figures of a vmm target for the ledger comparison, or null.
  virtual const Statistics* statistics() { return nullptr; }
  /// Its figures are right to the byte behind every operation, failed ones included, and
  /// for_each_mapping tells where it has something mapped.
  virtual bool is_exact() const { return false; }
  virtual void for_each_mapping(const std::function<void(DevicePtr base)>&) {}
  /// Ranges that it has, for buffers or of its own; none if it does not tell.
  virtual void for_each_range(const std::function<void(const TargetRange&)>&) {}
  /// The first broken invariant in words, or "".
  virtual std::string check_invariants() { return {}; }
};

/// What surrounds a target.
struct TargetContext {
  Backend* backend = nullptr;
  Environment environment;
};

/// Makes the resource of a `resource` line. A zoo passes its own.
using TargetFactory = std::function<Result<std::unique_ptr<TargetResource>>(
    const TargetContext& context, const TargetOptions& options)>;

/// The core: VirtualMemoryResource, StreamOrderedPool, RecyclingPool.
Result<std::unique_ptr<TargetResource>> make_core_target(const TargetContext& context,
                                                         const TargetOptions& options);

}  // namespace granule::prop
