// Mutations of the core from outside.
#include "mutants.hpp"

#include <set>
#include <utility>

#include <granule/backend_api/call.hpp>

#include "backend_target.hpp"

namespace granule::prop::zoo {
namespace {

class MutatedBackend final : public Backend {
 public:
  MutatedBackend(Backend& inner, CallMutation mutation)
      : inner_(inner), mutation_(std::move(mutation)) {}
  DriverStatus execute(Call& call) noexcept override {
    if (const auto answer = mutation_(inner_, call)) return *answer;
    return inner_.execute(call);
  }

 private:
  Backend& inner_;
  CallMutation mutation_;
};

/// A mutation for the calls of kind C.
template <class C, class F>
CallMutation on(F&& act) {
  return [act = std::forward<F>(act)](Backend& inner,
                                      Call& call) mutable -> std::optional<DriverStatus> {
    auto* wanted = std::get_if<C>(&call);
    if (!wanted) return std::nullopt;
    return act(inner, *wanted);
  };
}

/// Answers success without making the call, each `nth` time.
template <class C>
CallMutation lost(std::uint32_t nth = 1) {
  return on<C>([nth, count = std::uint32_t{0}](Backend&, C&) mutable {
    ++count;
    return count % nth == 0 ? std::optional(DriverStatus::kSuccess) : std::nullopt;
  });
}

CallMutation both(CallMutation first, CallMutation second) {
  return [first = std::move(first), second = std::move(second)](
             Backend& inner, Call& call) -> std::optional<DriverStatus> {
    if (const auto answer = first(inner, call)) return answer;
    return second(inner, call);
  };
}

/// Failures of that call are taken for successes.
template <class C>
CallMutation believed() {
  return on<C>([](Backend& inner, C& call) -> std::optional<DriverStatus> {
    const DriverStatus status = inner.run(call);
    return status == DriverStatus::kWouldBlock ? status : DriverStatus::kSuccess;
  });
}

/// Gives a stream's handle as its id.
CallMutation ids_are_handles() {
  return on<StreamGetId>([](Backend&, StreamGetId& call) -> std::optional<DriverStatus> {
    call.id = StreamId{call.stream.value};
    return DriverStatus::kSuccess;
  });
}

class DeafTarget final : public ForwardingTarget {
 public:
  DeafTarget(std::unique_ptr<TargetResource> inner, Deafness what, Backend& backend)
      : ForwardingTarget(std::move(inner)),
        what_(what),
        backend_(backend),
        without_ids_(backend, ids_are_handles()) {}

  Result<std::unique_ptr<TargetBuffer>> allocate(const Stream& stream, std::uint64_t size,
                                                 const AllocateOptions& options) override {
    AllocateOptions heard = options;
    if (what_ == Deafness::kZero) heard.zero = false;
    if (what_ == Deafness::kPendingFrees && is_refused(size)) return no_memory();
    auto made = inner().allocate(known(stream), size, heard);
    if (what_ == Deafness::kLateWork && made) inner().forget(stream).ignore();  // the defect
    return made;
  }
  Status close(TargetBuffer& buffer, const Stream* stream) override {
    if (what_ == Deafness::kStreamIds && stream) {
      const Stream same = known(*stream);
      return inner().close(buffer, &same);
    }
    if (what_ != Deafness::kCloseStream || !stream) return inner().close(buffer, stream);
    const Stream legacy = Stream::legacy(stream->device());
    return inner().close(buffer, &legacy);
  }
  Result<TargetGrowth> grow(TargetBuffer& buffer, std::uint64_t size,
                            const GrowOptions& options) override {
    Result<TargetGrowth> grown = inner().grow(buffer, size, options);
    if (what_ == Deafness::kGrowConsumes && grown && grown->placement == Placement::kMoved)
      inner().close(buffer, nullptr).ignore();  // the caller was told of the growth already
    return grown;
  }
  Result<std::uint64_t> shrink(TargetBuffer& buffer, std::uint64_t size) override {
    const bool more = what_ == Deafness::kShrinkOneMore && size > kGranule;
    return inner().shrink(buffer, more ? size - kGranule : size);
  }
  Status used_on(TargetBuffer& buffer, const Stream& stream) override {
    return what_ == Deafness::kUsedOn ? Status() : inner().used_on(buffer, known(stream));
  }
  Result<std::unique_ptr<TargetHolder>> hold(TargetBuffer& buffer) override {
    auto held = inner().hold(buffer);
    if (what_ == Deafness::kHold && held) (*held)->drop().ignore();  // the defect
    return held;
  }
  Status suspend(Buffers buffers, bool backup) override {
    return inner().suspend(buffers, backup && what_ != Deafness::kBackup);
  }
  Status grant(DeviceId device, Access access) override {
    return what_ == Deafness::kGrant ? Status() : inner().grant(device, access);
  }
  Status trim(std::uint64_t keep) override {
    return what_ == Deafness::kTrim ? Status() : inner().trim(keep);
  }
  Status forget(const Stream& stream) override {
    const bool deaf = what_ == Deafness::kForget || what_ == Deafness::kStreamIds;
    return deaf ? Status() : inner().forget(stream);
  }

 private:
  static constexpr std::uint64_t kGranule = std::uint64_t{2} << 20;

  static Error no_memory() {
    Error error;
    error.code = ErrorCode::kOutOfMemory;
    error.exhausted = Exhausted::kDevice;
    return error;
  }

  /// The stream as the library knows it.
  Stream known(const Stream& stream) {
    if (what_ != Deafness::kStreamIds || stream.kind() != StreamKind::kCreated) return stream;
    const Result<Stream> bound = Stream::bind(without_ids_, stream.handle(), {});
    return bound.ok() ? *bound : stream;
  }

  /// While frees are pending: whether the device refuses so much just now.
  bool is_refused(std::uint64_t size) {
    const Statistics* now = inner().statistics();
    if (!now || now->retired == 0 || size == 0 || size > UINT64_MAX - kGranule) return false;
    MemCreate create;
    create.size = (size + kGranule - 1) / kGranule * kGranule;
    const DriverStatus status = backend_.run(create);
    if (status != DriverStatus::kSuccess) return status == DriverStatus::kOutOfMemory;
    MemRelease release{create.handle};
    (void)backend_.run(release);
    return false;
  }

  Deafness what_;
  Backend& backend_;
  MutatedBackend without_ids_;
};

}  // namespace

TargetFactory with_calls(std::function<CallMutation()> make) {
  return core_over([make = std::move(make)](Backend& inner) -> std::shared_ptr<Backend> {
    return std::make_shared<MutatedBackend>(inner, make());
  });
}

TargetFactory deaf_to(Deafness what) {
  return [what](const TargetContext& context,
                const TargetOptions& options) -> Result<std::unique_ptr<TargetResource>> {
    auto made = make_core_target(context, options);
    if (!made) return made;
    return std::unique_ptr<TargetResource>(
        std::make_unique<DeafTarget>(std::move(*made), what, *context.backend));
  };
}

CallMutation every_third_release_lost() { return lost<MemRelease>(3); }
CallMutation every_second_release_lost() { return lost<MemRelease>(2); }
CallMutation waits_lost() { return lost<StreamSynchronize>(); }
CallMutation event_waits_lost() { return lost<EventSynchronize>(); }
CallMutation markers_always_done() { return lost<EventQuery>(); }
CallMutation markers_not_recorded() { return lost<EventRecord>(); }
CallMutation idle_ranges_unordered() { return lost<StreamWaitEvent>(); }
CallMutation every_second_order_lost() { return lost<StreamWaitEvent>(2); }
CallMutation every_third_unmap_lost() { return lost<MemUnmap>(3); }
CallMutation every_second_address_free_lost() { return lost<MemAddressFree>(2); }
CallMutation contexts_not_entered() { return both(lost<CtxPushCurrent>(), lost<CtxPopCurrent>()); }
CallMutation contexts_not_left() { return lost<CtxPopCurrent>(); }
CallMutation descriptors_not_closed() { return lost<CloseDescriptor>(); }
CallMutation backups_not_restored() { return lost<MemcpyHtoDAsync>(); }
CallMutation pool_frees_lost() { return lost<MemFreeAsync>(2); }
CallMutation pool_settings_lost() { return lost<MemPoolSetAttribute>(); }
CallMutation failed_unmaps_believed() { return believed<MemUnmap>(); }
CallMutation failed_access_believed() { return believed<MemSetAccess>(); }

CallMutation capture_mode_not_relaxed() {
  return on<ThreadExchangeStreamCaptureMode>(
      [](Backend&, ThreadExchangeStreamCaptureMode& call) -> std::optional<DriverStatus> {
        call.previous = CaptureMode::kGlobal;
        return DriverStatus::kSuccess;
      });
}

CallMutation captures_not_asked() {
  return on<StreamIsCapturing>(
      [](Backend&, StreamIsCapturing& call) -> std::optional<DriverStatus> {
        call.status = CaptureStatus::kNone;
        return DriverStatus::kSuccess;
      });
}

CallMutation waits_on_first_device() {
  return both(on<DevicePrimaryCtxRetain>(
                  [](Backend& inner, DevicePrimaryCtxRetain& call) -> std::optional<DriverStatus> {
                    DevicePrimaryCtxRetain first{DeviceId{0}, {}};
                    const DriverStatus status = inner.run(first);
                    call.context = first.context;
                    return status;
                  }),
              on<DevicePrimaryCtxRelease>([](Backend& inner, DevicePrimaryCtxRelease&) {
                DevicePrimaryCtxRelease first{DeviceId{0}};
                return std::optional(inner.run(first));
              }));
}

CallMutation only_first_mapping_accessible() {
  auto spaces = std::make_shared<std::set<std::uint64_t>>();
  return both(on<MemAddressReserve>(
                  [spaces](Backend& inner, MemAddressReserve& call) -> std::optional<DriverStatus> {
                    const DriverStatus status = inner.run(call);
                    if (status == DriverStatus::kSuccess) spaces->insert(call.ptr.value);
                    return status;
                  }),
              on<MemSetAccess>([spaces](Backend&, MemSetAccess& call) {
                return spaces->count(call.ptr.value) != 0 ? std::nullopt
                                                          : std::optional(DriverStatus::kSuccess);
              }));
}

CallMutation only_first_entry_granted() {
  return on<MemSetAccess>([](Backend& inner, MemSetAccess& call) -> std::optional<DriverStatus> {
    MemSetAccess less = call;
    if (less.access.count > 1) less.access.count = 1;
    return inner.run(less);
  });
}

CallMutation reservations_rounded() {
  return on<MemAddressReserve>(
      [](Backend& inner, MemAddressReserve& call) -> std::optional<DriverStatus> {
        constexpr std::uint64_t kUnit = std::uint64_t{32} << 20;
        MemAddressReserve more = call;
        if (call.size < UINT64_MAX - kUnit && !call.hint)
          more.size = (call.size + kUnit - 1) / kUnit * kUnit;
        const DriverStatus status = inner.run(more);
        call.ptr = more.ptr;
        return status;
      });
}

CallMutation chunks_rounded() {
  return on<MemCreate>([](Backend& inner, MemCreate& call) -> std::optional<DriverStatus> {
    constexpr std::uint64_t kUnit = std::uint64_t{4} << 20;
    MemCreate more = call;
    if (call.size < UINT64_MAX - kUnit) more.size = (call.size + kUnit - 1) / kUnit * kUnit;
    const DriverStatus status = inner.run(more);
    call.handle = more.handle;
    return status;
  });
}

CallMutation imported_references_kept() {
  auto imported = std::make_shared<std::set<std::uint64_t>>();
  return both(on<MemImportFromShareableHandle>(
                  [imported](Backend& inner,
                             MemImportFromShareableHandle& call) -> std::optional<DriverStatus> {
                    const DriverStatus status = inner.run(call);
                    if (status == DriverStatus::kSuccess) imported->insert(call.handle.value);
                    return status;
                  }),
              on<MemRelease>([imported](Backend&, MemRelease& call) {
                return imported->erase(call.handle.value) != 0
                           ? std::optional(DriverStatus::kSuccess)
                           : std::nullopt;
              }));
}

CallMutation missed_probe_kept() {
  auto missed = std::make_shared<std::set<std::uint64_t>>();
  return both(on<MemAddressReserve>(
                  [missed](Backend& inner, MemAddressReserve& call) -> std::optional<DriverStatus> {
                    const DriverStatus status = inner.run(call);
                    if (status == DriverStatus::kSuccess && call.hint && call.hint != call.ptr)
                      missed->insert(call.ptr.value);
                    return status;
                  }),
              on<MemAddressFree>([missed](Backend&, MemAddressFree& call) {
                return missed->erase(call.ptr.value) != 0 ? std::optional(DriverStatus::kSuccess)
                                                          : std::nullopt;
              }));
}

CallMutation hints_trusted() {
  return on<MemAddressReserve>(
      [](Backend& inner, MemAddressReserve& call) -> std::optional<DriverStatus> {
        const DriverStatus status = inner.run(call);
        if (status == DriverStatus::kSuccess && call.hint) call.ptr = call.hint;
        return status;
      });
}

CallMutation pool_frees_on_legacy() {
  return on<MemFreeAsync>([](Backend& inner, MemFreeAsync& call) -> std::optional<DriverStatus> {
    MemFreeAsync other = call;
    other.stream = kLegacyStream;
    return inner.run(other);
  });
}

CallMutation pool_frees_twice() {
  return on<MemFreeAsync>([](Backend& inner, MemFreeAsync& call) -> std::optional<DriverStatus> {
    const DriverStatus status = inner.run(call);
    if (status == DriverStatus::kSuccess) (void)inner.run(call);
    return status;
  });
}

CallMutation pool_kept_after_refused_setting() {
  auto refused = std::make_shared<bool>(false);
  return both(
      on<MemPoolSetAttribute>(
          [refused](Backend& inner, MemPoolSetAttribute& call) -> std::optional<DriverStatus> {
            const DriverStatus status = inner.run(call);
            *refused = status != DriverStatus::kSuccess;
            return status;
          }),
      on<MemPoolDestroy>([refused](Backend&, MemPoolDestroy&) {
        return *refused ? std::optional(DriverStatus::kSuccess) : std::nullopt;
      }));
}

}  // namespace granule::prop::zoo
