// The observer and the decorator that fill a Watch.
#include "watch.hpp"

#include <algorithm>
#include <utility>

#include "codes.hpp"
#include "interp/invariants.hpp"
#include "interp/world.hpp"

namespace granule::prop::sweep {

namespace {

SeenCall seen(const Call& call, DriverStatus status) {
  SeenCall now;
  now.kind = kind(call);
  now.status = status;
  if (const auto* reserve = std::get_if<MemAddressReserve>(&call)) {
    const bool asked = reserve->hint && status == DriverStatus::kSuccess;
    now.hinted = asked && reserve->ptr == reserve->hint;
    now.elsewhere = asked && !now.hinted;
  } else if (const auto* create = std::get_if<MemCreate>(&call)) {
    now.rdma = create->properties.rdma != 0;
    now.on_device = create->properties.location == device_location({0});
  }
  return now;
}

}  // namespace

/// Notes calls while a statement runs. Owns the decorator below it, if there is one.
class Watch::Eye final : public Backend {
 public:
  Eye(Watch& watch, Backend& inner, std::unique_ptr<Backend> owned)
      : watch_(watch), inner_(inner), owned_(std::move(owned)) {}

  DriverStatus execute(Call& call) noexcept override {
    const DriverStatus status = inner_.execute(call);
    const CallOrigin origin = current_origin();
    const bool counts = watch_.world_ && origin != CallOrigin::kHarness &&
                        status != DriverStatus::kWouldBlock && is_driver_call(kind(call));
    if (counts) {
      SeenCall now = seen(call, status);
      now.of_library = origin == CallOrigin::kLibrary;
      now.host_before = watch_.world_->host_memory.allocations();
      watch_.calls_.push_back(now);
    }
    return status;
  }

 private:
  Watch& watch_;
  Backend& inner_;
  std::unique_ptr<Backend> owned_;
};

void Watch::install(RunOptions& options) {
  options.observer = this;
  options.decorate = [this, inner_of = std::move(options.decorate)](Backend& inner) {
    clear();
    std::unique_ptr<Backend> owned = inner_of ? inner_of(inner) : nullptr;
    Backend& next = owned ? *owned : inner;
    return std::make_unique<Eye>(*this, next, std::move(owned));
  };
}

void Watch::before(const World& world, std::size_t statement) {
  Span span;
  span.statement = statement;
  span.first_call = calls_.size();
  span.host_begin = world.host_memory.allocations();
  span.host_failed = world.host_memory.failed();
  span.reports = world.sink.reports.size();
  span.lost = lost_contexts(world);
  // The driver keeps the last granule to itself (S25).
  const std::uint64_t whole = world.machine->oracle().free_bytes(0) / world.sizes.granule;
  span.free_before = (std::max<std::uint64_t>(whole, 1) - 1) * world.sizes.granule;
  spans_.push_back(span);
  world_ = &world;
}

void Watch::after(const World& world, std::size_t, const Reply& reply) {
  world_ = nullptr;
  Span& span = spans_.back();
  span.end_call = calls_.size();
  span.host_end = world.host_memory.allocations();
  span.host_failed = world.host_memory.failed() - span.host_failed;
  span.reports = world.sink.reports.size() - span.reports;
  span.lost = lost_contexts(world) - span.lost;
  span.answer = {reply.kind, reply.word, reply.detail, span.reports != 0};
}

void Watch::clear() {
  spans_.clear();
  calls_.clear();
  world_ = nullptr;
}

}  // namespace granule::prop::sweep
