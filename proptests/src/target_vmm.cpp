// The core's VirtualMemoryResource as a target.
#include <algorithm>
#include <utility>
#include <vector>

#include "target_core.hpp"

namespace granule::prop {
namespace {

class VmmBuffer final : public TargetBuffer {
 public:
  explicit VmmBuffer(Buffer made) : buffer(std::move(made)) {}
  DevicePtr ptr() const override { return buffer.ptr(); }
  std::uint64_t size() const override { return buffer.size(); }
  bool is_closed() const override { return buffer.is_closed(); }
  bool is_suspended() const override { return !buffer.is_closed() && buffer.is_suspended(); }
  Buffer buffer;
};

class VmmHolder final : public TargetHolder {
 public:
  explicit VmmHolder(RangeHolder made) : holder_(std::move(made)) {}
  Status drop() override { return holder_.drop(); }

 private:
  RangeHolder holder_;
};

class VmmBundle final : public TargetBundle {
 public:
  explicit VmmBundle(SharedBuffer made) : shared(std::move(made)) {}
  Status close() override { return shared.close(); }
  SharedBuffer shared;
};

Error wrong_resource() {
  Error error;
  error.code = ErrorCode::kWrongResource;
  return error;
}

Buffer& vmm_of(TargetBuffer& buffer) { return static_cast<VmmBuffer&>(buffer).buffer; }

/// The buffers of a set; nothing if one is of another kind.
std::optional<std::vector<Buffer*>> all_of(TargetResource::Buffers buffers) {
  std::vector<Buffer*> found;
  for (TargetBuffer* buffer : buffers) {
    auto* known = dynamic_cast<VmmBuffer*>(buffer);
    if (!known) return std::nullopt;
    found.push_back(&known->buffer);
  }
  return found;
}

class VmmTarget final : public TargetResource {
 public:
  explicit VmmTarget(VirtualMemoryResource made) : resource_(std::move(made)) {}

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    return wrap(resource_.allocate(stream, size, options));
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    return stream ? vmm_of(buffer).close(*stream) : vmm_of(buffer).close();
  }
  Status drop(TargetBuffer& buffer) override { return vmm_of(buffer).drop(); }
  Result<TargetGrowth> grow(TargetBuffer& buffer, std::uint64_t size,
                            const GrowOptions& options) override {
    Result<GrowResult> grown = vmm_of(buffer).grow(size, options);
    if (!grown) return grown.error();
    return TargetGrowth{std::make_unique<VmmBuffer>(std::move(grown->buffer)), grown->placement};
  }
  Result<ResizeResult> resize(TargetBuffer& buffer, std::uint64_t size,
                              const GrowOptions& options) override {
    return vmm_of(buffer).resize(size, options);
  }
  Result<std::uint64_t> shrink(TargetBuffer& buffer, std::uint64_t size) override {
    return vmm_of(buffer).shrink(size);
  }
  Result<bool> could_extend(TargetBuffer& buffer) override { return vmm_of(buffer).could_extend(); }
  Status used_on(TargetBuffer& buffer, const Stream& stream) override {
    return vmm_of(buffer).used_on(stream);
  }
  Result<std::unique_ptr<TargetHolder>> hold(TargetBuffer& buffer) override {
    Result<RangeHolder> held = vmm_of(buffer).hold();
    if (!held) return held.error();
    return std::unique_ptr<TargetHolder>(std::make_unique<VmmHolder>(std::move(*held)));
  }
  Status suspend(Buffers buffers, bool backup) override {
    const auto known = all_of(buffers);
    return known ? resource_.suspend(*known, backup) : Status(wrong_resource());
  }
  Status resume(Buffers buffers) override {
    const auto known = all_of(buffers);
    return known ? resource_.resume(*known) : Status(wrong_resource());
  }
  Result<std::unique_ptr<TargetBundle>> export_buffer(TargetBuffer& buffer) override {
    Result<SharedBuffer> shared = resource_.export_buffer(vmm_of(buffer));
    if (!shared) return shared.error();
    return std::unique_ptr<TargetBundle>(std::make_unique<VmmBundle>(std::move(*shared)));
  }
  Result<std::unique_ptr<TargetBuffer>> import_buffer(const Stream& stream,
                                                      TargetBundle& bundle) override {
    return wrap(resource_.import_buffer(stream, static_cast<VmmBundle&>(bundle).shared));
  }
  Status grant(DeviceId device, Access access) override { return resource_.grant(device, access); }
  Status trim(std::uint64_t keep) override { return resource_.trim(keep); }
  Status collect() override {
    resource_.collect();
    return {};
  }
  Status forget(const Stream& stream) override { return resource_.forget(stream); }

  std::optional<std::uint64_t> stat(std::string_view field) const override {
    const Statistics now = resource_.statistics();
    if (field == "live") return now.live;
    if (field == "mapped") return now.mapped;
    if (field == "cached") return now.cached;
    if (field == "retired") return now.retired;
    if (field == "parked") return now.parked;
    if (field == "quarantined") return now.quarantined;
    if (field == "reserved") return now.reserved;
    return std::nullopt;
  }
  bool is_exact() const override { return true; }
  void for_each_mapping(const std::function<void(DevicePtr base)>& visit) override {
    resource_.for_each_mapping([&](const VirtualMemoryResource::MappingView& view) {
      if (view.mapped) visit(view.base);
    });
  }
  void for_each_range(const std::function<void(const TargetRange&)>& visit) override {
    resource_.for_each_range([&](const VirtualMemoryResource::RangeView& view) {
      visit({view.base, view.size, view.committed, state_of(view.state), view.suspended});
    });
    resource_.for_each_mapping([&](const VirtualMemoryResource::MappingView& view) {
      if (view.quarantined)
        visit({view.base, view.size, view.size, TargetRange::State::kQuarantined, false});
    });
  }
  const Statistics* statistics() override {
    statistics_ = resource_.statistics();
    return &statistics_;
  }
  std::string check_invariants() override { return resource_.check_invariants(); }

 private:
  static TargetRange::State state_of(VirtualMemoryResource::RangeState state) {
    using From = VirtualMemoryResource::RangeState;
    switch (state) {
      case From::kOpen:
        return TargetRange::State::kOpen;
      case From::kRetired:
        return TargetRange::State::kRetired;
      case From::kParked:
        return TargetRange::State::kParked;
      case From::kIdle:
        return TargetRange::State::kIdle;
    }
    return TargetRange::State::kOpen;
  }
  static Result<std::unique_ptr<TargetBuffer>> wrap(Result<Buffer> made) {
    if (!made) return made.error();
    return std::unique_ptr<TargetBuffer>(std::make_unique<VmmBuffer>(std::move(*made)));
  }

  VirtualMemoryResource resource_;
  Statistics statistics_;
};

}  // namespace

Result<std::unique_ptr<TargetResource>> make_vmm_target(const TargetContext& context,
                                                        const TargetOptions& options) {
  Result<VirtualMemoryResource> made =
      VirtualMemoryResource::create(*context.backend, options.vmm, context.environment);
  if (!made) return made.error();
  return std::unique_ptr<TargetResource>(std::make_unique<VmmTarget>(std::move(*made)));
}

Result<std::unique_ptr<TargetResource>> make_core_target(const TargetContext& context,
                                                         const TargetOptions& options) {
  switch (options.kind) {
    case TargetOptions::Kind::kVmm:
      return make_vmm_target(context, options);
    case TargetOptions::Kind::kPool:
      return make_pool_target(context, options);
    case TargetOptions::Kind::kRecycler:
      return make_recycler_target(context, options);
  }
  return make_vmm_target(context, options);
}

}  // namespace granule::prop
