// A target that passes everything on to the core's, over a backend in between.
#include "backend_target.hpp"

#include <utility>
#include <vector>

namespace granule::prop {
namespace {

class KeptBuffer final : public TargetBuffer {
 public:
  KeptBuffer(std::shared_ptr<Backend> kept, std::unique_ptr<TargetBuffer> made)
      : kept_(std::move(kept)), inner(std::move(made)) {}
  DevicePtr ptr() const override { return inner->ptr(); }
  std::uint64_t size() const override { return inner->size(); }
  bool is_closed() const override { return inner->is_closed(); }
  bool is_suspended() const override { return inner->is_suspended(); }

 private:
  std::shared_ptr<Backend> kept_;

 public:
  std::unique_ptr<TargetBuffer> inner;  // goes before the backend
};

class KeptHolder final : public TargetHolder {
 public:
  KeptHolder(std::shared_ptr<Backend> kept, std::unique_ptr<TargetHolder> made)
      : kept_(std::move(kept)), inner_(std::move(made)) {}
  Status drop() override { return inner_->drop(); }

 private:
  std::shared_ptr<Backend> kept_;
  std::unique_ptr<TargetHolder> inner_;
};

class KeptBundle final : public TargetBundle {
 public:
  KeptBundle(std::shared_ptr<Backend> kept, std::unique_ptr<TargetBundle> made)
      : kept_(std::move(kept)), inner(std::move(made)) {}
  Status close() override { return inner->close(); }

 private:
  std::shared_ptr<Backend> kept_;

 public:
  std::unique_ptr<TargetBundle> inner;
};

TargetBuffer& inner_of(TargetBuffer& buffer) { return *static_cast<KeptBuffer&>(buffer).inner; }

class BackendTarget final : public TargetResource {
 public:
  BackendTarget(std::shared_ptr<Backend> backend, std::unique_ptr<TargetResource> inner)
      : backend_(std::move(backend)), inner_(std::move(inner)) {}

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    return kept(inner_->allocate(stream, size, options));
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    return inner_->close(inner_of(buffer), stream);
  }
  Status drop(TargetBuffer& buffer) override { return inner_->drop(inner_of(buffer)); }
  Result<TargetGrowth> grow(TargetBuffer& buffer, std::uint64_t size,
                            const GrowOptions& options) override {
    Result<TargetGrowth> grown = inner_->grow(inner_of(buffer), size, options);
    if (!grown) return grown.error();
    return TargetGrowth{std::make_unique<KeptBuffer>(backend_, std::move(grown->buffer)),
                        grown->placement};
  }
  Result<ResizeResult> resize(TargetBuffer& buffer, std::uint64_t size,
                              const GrowOptions& options) override {
    return inner_->resize(inner_of(buffer), size, options);
  }
  Result<std::uint64_t> shrink(TargetBuffer& buffer, std::uint64_t size) override {
    return inner_->shrink(inner_of(buffer), size);
  }
  Result<bool> could_extend(TargetBuffer& buffer) override {
    return inner_->could_extend(inner_of(buffer));
  }
  Status used_on(TargetBuffer& buffer, const Stream& stream) override {
    return inner_->used_on(inner_of(buffer), stream);
  }
  Result<std::unique_ptr<TargetHolder>> hold(TargetBuffer& buffer) override {
    auto held = inner_->hold(inner_of(buffer));
    if (!held) return held.error();
    return std::unique_ptr<TargetHolder>(std::make_unique<KeptHolder>(backend_, std::move(*held)));
  }
  Status suspend(Buffers buffers, bool backup) override {
    const std::vector<TargetBuffer*> inner = inner_of_all(buffers);
    return inner_->suspend(inner, backup);
  }
  Status resume(Buffers buffers) override {
    const std::vector<TargetBuffer*> inner = inner_of_all(buffers);
    return inner_->resume(inner);
  }
  Result<std::unique_ptr<TargetBundle>> export_buffer(TargetBuffer& buffer) override {
    auto made = inner_->export_buffer(inner_of(buffer));
    if (!made) return made.error();
    return std::unique_ptr<TargetBundle>(std::make_unique<KeptBundle>(backend_, std::move(*made)));
  }
  Result<std::unique_ptr<TargetBuffer>> import_buffer(const Stream& stream,
                                                      TargetBundle& bundle) override {
    return kept(inner_->import_buffer(stream, *static_cast<KeptBundle&>(bundle).inner));
  }
  Status grant(DeviceId device, Access access) override { return inner_->grant(device, access); }
  Status peer(DeviceId device, Access access) override { return inner_->peer(device, access); }
  Status trim(std::uint64_t keep) override { return inner_->trim(keep); }
  Status collect() override { return inner_->collect(); }
  Status forget(const Stream& stream) override { return inner_->forget(stream); }
  Status set(std::string_view key, std::uint64_t value) override { return inner_->set(key, value); }
  Status reset_high() override { return inner_->reset_high(); }
  std::optional<std::uint64_t> stat(std::string_view field) const override {
    return inner_->stat(field);
  }
  const Statistics* statistics() override { return inner_->statistics(); }
  std::string check_invariants() override { return inner_->check_invariants(); }

 private:
  Result<std::unique_ptr<TargetBuffer>> kept(Result<std::unique_ptr<TargetBuffer>> made) {
    if (!made) return made.error();
    return std::unique_ptr<TargetBuffer>(std::make_unique<KeptBuffer>(backend_, std::move(*made)));
  }
  static std::vector<TargetBuffer*> inner_of_all(Buffers buffers) {
    std::vector<TargetBuffer*> inner;
    for (TargetBuffer* buffer : buffers) inner.push_back(&inner_of(*buffer));
    return inner;
  }

  std::shared_ptr<Backend> backend_;
  std::unique_ptr<TargetResource> inner_;
};

}  // namespace

TargetFactory core_over(BackendMaker make) {
  return [make = std::move(make)](
             const TargetContext& context,
             const TargetOptions& options) -> Result<std::unique_ptr<TargetResource>> {
    TargetContext over = context;
    const std::shared_ptr<Backend> backend = make(*context.backend);
    over.backend = backend.get();
    auto inner = make_core_target(over, options);
    if (!inner) return inner.error();
    return std::unique_ptr<TargetResource>(
        std::make_unique<BackendTarget>(backend, std::move(*inner)));
  };
}

}  // namespace granule::prop
