// The core's StreamOrderedPool and RecyclingPool as targets.
#include <granule/pool.hpp>
#include <utility>

#include "target_core.hpp"

namespace granule::prop {
namespace {

class PoolBlock final : public TargetBuffer {
 public:
  explicit PoolBlock(PoolBuffer made) : block(std::move(made)) {}
  DevicePtr ptr() const override { return block.ptr(); }
  std::uint64_t size() const override { return block.size(); }
  bool is_closed() const override { return block.is_closed(); }
  PoolBuffer block;
};

PoolBuffer& block_of(TargetBuffer& buffer) { return static_cast<PoolBlock&>(buffer).block; }

Status close_block(TargetBuffer& buffer, const Stream* stream) {
  return stream ? block_of(buffer).close(*stream) : block_of(buffer).close();
}

Result<std::unique_ptr<TargetBuffer>> wrap(Result<PoolBuffer> made) {
  if (!made) return made.error();
  return std::unique_ptr<TargetBuffer>(std::make_unique<PoolBlock>(std::move(*made)));
}

Error refused(ErrorCode code, std::string_view detail) {
  Error error;
  error.code = code;
  error.detail = detail;
  return error;
}

/// What no pool can do for an allocation.
Status check(const AllocateOptions& options) {
  if (options.capacity != 0 || options.at || options.zero)
    return refused(ErrorCode::kUnsupported, "a pool has no capacity, place or clearing");
  return {};
}

class PoolTarget final : public TargetResource {
 public:
  explicit PoolTarget(StreamOrderedPool made) : pool_(std::move(made)) {}

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    if (Status fine = check(options); !fine) return fine.error();
    return wrap(pool_.allocate(stream, size));
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    return close_block(buffer, stream);
  }
  Status drop(TargetBuffer& buffer) override { return block_of(buffer).drop(); }
  Status peer(DeviceId device, Access access) override {
    return pool_.set_peer_access(device, access);
  }
  Status trim(std::uint64_t keep) override { return pool_.trim(keep); }
  Status forget(const Stream& stream) override { return pool_.forget(stream); }
  Status collect() override {
    pool_.collect();
    return {};
  }
  Status set(std::string_view key, std::uint64_t value) override {
    if (key == "threshold") return pool_.set_threshold(value);
    if (key == "reuse_follow_events") return pool_.set_reuse(ReusePolicy::kFollowEvents, value);
    if (key == "reuse_opportunistic") return pool_.set_reuse(ReusePolicy::kOpportunistic, value);
    if (key == "reuse_internal") return pool_.set_reuse(ReusePolicy::kInternalDependencies, value);
    return refused(ErrorCode::kUnsupported, "not a setting of a pool");
  }
  Status reset_high() override { return pool_.reset_high(); }
  std::optional<std::uint64_t> stat(std::string_view field) const override {
    const Result<PoolUsage> usage = pool_.usage();
    if (!usage.ok()) return std::nullopt;
    if (field == "reserved") return usage->reserved;
    if (field == "reserved_high") return usage->reserved_high;
    if (field == "used") return usage->used;
    if (field == "used_high") return usage->used_high;
    return std::nullopt;
  }

 private:
  StreamOrderedPool pool_;
};

class RecyclerTarget final : public TargetResource {
 public:
  explicit RecyclerTarget(RecyclingPool made) : pool_(std::move(made)) {}

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    if (Status fine = check(options); !fine) return fine.error();
    return wrap(pool_.allocate(stream, size));
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    return close_block(buffer, stream);
  }
  Status drop(TargetBuffer& buffer) override { return block_of(buffer).drop(); }
  Status trim(std::uint64_t keep) override { return pool_.trim(keep); }
  Status forget(const Stream& stream) override { return pool_.forget(stream); }
  std::optional<std::uint64_t> stat(std::string_view field) const override {
    if (field == "cached") return pool_.cached();
    if (field == "live") return pool_.held() - pool_.cached();
    return std::nullopt;
  }

 private:
  RecyclingPool pool_;
};

}  // namespace

Result<std::unique_ptr<TargetResource>> make_pool_target(const TargetContext& context,
                                                         const TargetOptions& options) {
  PoolOptions wanted;
  wanted.device = options.device;
  wanted.bind_default = options.default_pool;
  if (options.has_threshold) wanted.threshold = options.threshold;
  wanted.max_size = options.max_size;
  Result<StreamOrderedPool> made =
      StreamOrderedPool::create(*context.backend, wanted, context.environment);
  if (!made) return made.error();
  return std::unique_ptr<TargetResource>(std::make_unique<PoolTarget>(std::move(*made)));
}

Result<std::unique_ptr<TargetResource>> make_recycler_target(const TargetContext& context,
                                                             const TargetOptions& options) {
  RecyclerOptions wanted;
  wanted.device = options.device;
  wanted.limit = options.limit;
  Result<RecyclingPool> made = RecyclingPool::create(*context.backend, wanted, context.environment);
  if (!made) return made.error();
  return std::unique_ptr<TargetResource>(std::make_unique<RecyclerTarget>(std::move(*made)));
}

}  // namespace granule::prop
