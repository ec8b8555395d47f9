// Mutations of the core from outside: a driver that loses or changes a call of the library, and a
// target that loses a request of the caller.
#pragma once

#include <functional>
#include <optional>

#include <granule/backend_api/backend.hpp>
#include <granule/prop/target.hpp>

namespace granule::prop::zoo {

/// Decides about one call of the library: makes it itself and answers, or leaves it alone.
using CallMutation = std::function<std::optional<DriverStatus>(Backend& inner, Call& call)>;

/// Core targets behind a driver that is mutated. `make` is called once for each resource, so that a
/// mutation may keep state.
TargetFactory with_calls(std::function<CallMutation()> make);

/// What a target does with the requests of its caller; by default it passes them on.
class ForwardingTarget : public TargetResource {
 public:
  explicit ForwardingTarget(std::unique_ptr<TargetResource> inner) : inner_(std::move(inner)) {}
  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    return inner_->allocate(stream, size, options);
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    return inner_->close(buffer, stream);
  }
  Status drop(TargetBuffer& buffer) override { return inner_->drop(buffer); }
  Result<TargetGrowth> grow(TargetBuffer& buffer, std::uint64_t size,
                            const GrowOptions& options) override {
    return inner_->grow(buffer, size, options);
  }
  Result<ResizeResult> resize(TargetBuffer& buffer, std::uint64_t size,
                              const GrowOptions& options) override {
    return inner_->resize(buffer, size, options);
  }
  Result<std::uint64_t> shrink(TargetBuffer& buffer, std::uint64_t size) override {
    return inner_->shrink(buffer, size);
  }
  Result<bool> could_extend(TargetBuffer& buffer) override { return inner_->could_extend(buffer); }
  Status used_on(TargetBuffer& buffer, const Stream& stream) override {
    return inner_->used_on(buffer, stream);
  }
  Result<std::unique_ptr<TargetHolder>> hold(TargetBuffer& buffer) override {
    return inner_->hold(buffer);
  }
  Status suspend(Buffers buffers, bool backup) override { return inner_->suspend(buffers, backup); }
  Status resume(Buffers buffers) override { return inner_->resume(buffers); }
  Result<std::unique_ptr<TargetBundle>> export_buffer(TargetBuffer& buffer) override {
    return inner_->export_buffer(buffer);
  }
  Result<std::unique_ptr<TargetBuffer>> import_buffer(const Stream& stream,
                                                      TargetBundle& bundle) override {
    return inner_->import_buffer(stream, bundle);
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

 protected:
  TargetResource& inner() { return *inner_; }

 private:
  std::unique_ptr<TargetResource> inner_;
};

/// Core targets whose callers are not heard in one respect.
enum class Deafness : std::uint8_t {
  kUsedOn,         // further streams
  kForget,         // streams that go
  kTrim,           // the wish to have idle memory back
  kCloseStream,    // the stream of a close: the default one takes its place
  kGrowConsumes,   // a grow closes its input
  kBackup,         // a backup on suspend
  kGrant,          // a grant
  kZero,           // a clear
  kHold,           // a holder is closed at once
  kShrinkOneMore,  // a shrink gives back one granule more
  kLateWork,       // what is queued after the allocation: its marker is set right there
  kStreamIds,      // ids of streams: the handle has to do, and their end is not announced
  kPendingFrees,   // pending frees are not waited for when memory runs out
};
TargetFactory deaf_to(Deafness what);

// Mutations of calls, by name.
CallMutation every_third_release_lost();
CallMutation every_second_release_lost();
CallMutation waits_lost();
CallMutation event_waits_lost();
CallMutation markers_always_done();
CallMutation markers_not_recorded();
CallMutation idle_ranges_unordered();
CallMutation every_second_order_lost();
CallMutation waits_on_first_device();
CallMutation only_first_mapping_accessible();
CallMutation only_first_entry_granted();
CallMutation every_third_unmap_lost();
CallMutation every_second_address_free_lost();
CallMutation reservations_rounded();
CallMutation chunks_rounded();
CallMutation capture_mode_not_relaxed();
CallMutation contexts_not_entered();
CallMutation contexts_not_left();
CallMutation descriptors_not_closed();
CallMutation backups_not_restored();
CallMutation imported_references_kept();
CallMutation captures_not_asked();
CallMutation missed_probe_kept();
CallMutation hints_trusted();
CallMutation failed_unmaps_believed();
CallMutation failed_access_believed();
CallMutation pool_frees_on_legacy();
CallMutation pool_frees_lost();
CallMutation pool_frees_twice();
CallMutation pool_settings_lost();
CallMutation pool_kept_after_refused_setting();

}  // namespace granule::prop::zoo
