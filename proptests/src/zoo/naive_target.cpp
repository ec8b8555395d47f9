// The naive resource as a target of programs.
#include "naive_target.hpp"

#include <utility>

#include "naive_core.hpp"

namespace granule::prop::zoo {
namespace {

using CorePtr = std::shared_ptr<NaiveCore>;

class NaiveBuffer final : public TargetBuffer {
 public:
  NaiveBuffer(CorePtr core, NaiveStatePtr made) : state(std::move(made)), core_(std::move(core)) {}
  NaiveBuffer(const NaiveBuffer&) = delete;
  NaiveBuffer& operator=(const NaiveBuffer&) = delete;
  ~NaiveBuffer() override { core_->drop(*state, false).ignore(); }  // what fails is reported
  DevicePtr ptr() const override { return DevicePtr{state->closed ? 0 : state->base}; }
  std::uint64_t size() const override { return state->closed ? 0 : state->size; }
  bool is_closed() const override { return state->closed; }
  bool is_suspended() const override { return !state->closed && state->suspended; }
  bool is_of(const CorePtr& core) const { return core_ == core; }
  NaiveStatePtr state;

 private:
  CorePtr core_;
};

class NaiveHolder final : public TargetHolder {
 public:
  NaiveHolder(CorePtr core, NaiveStatePtr made) : core_(std::move(core)), state_(std::move(made)) {}
  NaiveHolder(const NaiveHolder&) = delete;
  NaiveHolder& operator=(const NaiveHolder&) = delete;
  ~NaiveHolder() override { core_->drop(*state_, false).ignore(); }  // what fails is reported
  Status drop() override { return core_->drop(*state_, true); }

 private:
  CorePtr core_;
  NaiveStatePtr state_;
};

class NaiveBundle final : public TargetBundle {
 public:
  NaiveBundle(CorePtr core, std::vector<Descriptor> made)
      : core_(std::move(core)), descriptors_(std::move(made)) {}
  NaiveBundle(const NaiveBundle&) = delete;
  NaiveBundle& operator=(const NaiveBundle&) = delete;
  ~NaiveBundle() override { close().ignore(); }  // nobody is left to be told
  Status close() override { return core_->close_descriptors(descriptors_); }

 private:
  CorePtr core_;
  std::vector<Descriptor> descriptors_;
};

NaiveState& of(TargetBuffer& buffer) { return *static_cast<NaiveBuffer&>(buffer).state; }

class NaiveTarget final : public TargetResource {
 public:
  explicit NaiveTarget(CorePtr core) : core_(std::move(core)) {}

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    Result<NaiveStatePtr> made = core_->allocate(stream, size, options);
    if (!made) return made.error();
    return wrap(*made);
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    return core_->close(of(buffer), stream);
  }
  Status drop(TargetBuffer& buffer) override { return core_->drop(of(buffer), true); }
  Result<TargetGrowth> grow(TargetBuffer& buffer, std::uint64_t size,
                            const GrowOptions& options) override {
    Result<NaiveCore::Grown> grown =
        core_->grow(static_cast<NaiveBuffer&>(buffer).state, size, options);
    if (!grown) return grown.error();
    return TargetGrowth{wrap(grown->state), grown->placement};
  }
  Result<ResizeResult> resize(TargetBuffer& buffer, std::uint64_t size,
                              const GrowOptions& options) override {
    return core_->resize(of(buffer), size, options);
  }
  Result<std::uint64_t> shrink(TargetBuffer& buffer, std::uint64_t size) override {
    return core_->shrink(of(buffer), size);
  }
  Result<bool> could_extend(TargetBuffer& buffer) override {
    return core_->could_extend(of(buffer));
  }
  Status used_on(TargetBuffer& buffer, const Stream& stream) override {
    return core_->used_on(of(buffer), stream);
  }
  Result<std::unique_ptr<TargetHolder>> hold(TargetBuffer& buffer) override {
    Result<NaiveStatePtr> made = core_->hold(of(buffer));
    if (!made) return made.error();
    return std::unique_ptr<TargetHolder>(std::make_unique<NaiveHolder>(core_, *made));
  }
  Status suspend(Buffers buffers, bool backup) override {
    const auto known = states(buffers);
    return known ? core_->suspend(*known, backup) : wrong_resource();
  }
  Status resume(Buffers buffers) override {
    const auto known = states(buffers);
    return known ? core_->resume(*known) : wrong_resource();
  }
  Result<std::unique_ptr<TargetBundle>> export_buffer(TargetBuffer& buffer) override {
    Result<std::vector<Descriptor>> made = core_->export_chunks(of(buffer));
    if (!made) return made.error();
    return std::unique_ptr<TargetBundle>(std::make_unique<NaiveBundle>(core_, std::move(*made)));
  }
  Status grant(DeviceId device, Access access) override { return core_->grant(device, access); }
  Status trim(std::uint64_t) override { return {}; }
  Status collect() override {
    core_->reap_parked();
    return {};
  }
  Status forget(const Stream& stream) override { return core_->forget(stream); }

  std::optional<std::uint64_t> stat(std::string_view field) const override {
    const Statistics now = core_->statistics();
    if (field == "live") return now.live;
    if (field == "mapped") return now.mapped;
    if (field == "parked") return now.parked;
    if (field == "quarantined") return now.quarantined;
    if (field == "reserved") return now.reserved;
    if (field == "cached" || field == "retired") return 0;
    return std::nullopt;
  }
  const Statistics* statistics() override {
    statistics_ = core_->statistics();
    return &statistics_;
  }

 private:
  std::unique_ptr<TargetBuffer> wrap(const NaiveStatePtr& state) {
    return std::make_unique<NaiveBuffer>(core_, state);
  }
  static Status wrong_resource() {
    return error_of(ErrorCode::kWrongResource, "the buffer belongs to another resource");
  }
  std::optional<std::vector<NaiveState*>> states(Buffers buffers) const {
    std::vector<NaiveState*> found;
    for (TargetBuffer* buffer : buffers) {
      auto* known = dynamic_cast<NaiveBuffer*>(buffer);
      if (!known || !known->is_of(core_)) return std::nullopt;
      found.push_back(known->state.get());
    }
    return found;
  }

  CorePtr core_;
  Statistics statistics_;
};

}  // namespace

TargetFactory naive_target(Mistake mistake) {
  return [mistake](const TargetContext& context,
                   const TargetOptions& options) -> Result<std::unique_ptr<TargetResource>> {
    if (options.kind != TargetOptions::Kind::kVmm) return make_core_target(context, options);
    Result<CorePtr> core = NaiveCore::create(context, options.vmm, mistake);
    if (!core) return core.error();
    return std::unique_ptr<TargetResource>(std::make_unique<NaiveTarget>(std::move(*core)));
  };
}

}  // namespace granule::prop::zoo
