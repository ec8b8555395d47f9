// The destructor's path of whatever a name holds.
#include <algorithm>

#include "order.hpp"

namespace granule::prop {
namespace {

Reply drop_buffer(World& world, BufferObject& buffer, bool unordered) {
  if (!buffer.buffer->is_closed()) {
    const StreamObject on = stream_named(world, buffer.stream, buffer.resource->device);
    remember_release(world, *buffer.resource, buffer.segments);
    if (unordered) {
      note_unordered_release(world, buffer.segments, on, kHostLane);
    } else {
      const DriverStatus ordered =
          order_before_release(world, buffer.segments, on, buffer.lane, buffer.named);
      if (ordered == DriverStatus::kWouldBlock) return Reply::of(ordered);
    }
    const OriginScope scope(CallOrigin::kLibrary);
    const Status dropped = buffer.resource->target->drop(*buffer.buffer);
    if (!dropped) return Reply::of(dropped);
  }
  const OriginScope scope(CallOrigin::kLibrary);
  buffer.buffer.reset();
  return Reply::ok();
}

Reply drop_holder(World& world, HolderObject& holder, bool unordered) {
  const StreamObject on = stream_named(world, holder.stream, holder.resource->device);
  remember_release(world, *holder.resource, holder.segments);
  if (unordered) {
    note_unordered_release(world, holder.segments, on, kHostLane);
  } else {
    const DriverStatus ordered = order_before_release(world, holder.segments, on, holder.lane);
    if (ordered == DriverStatus::kWouldBlock) return Reply::of(ordered);
  }
  const OriginScope scope(CallOrigin::kLibrary);
  const Status dropped = holder.holder->drop();
  if (!dropped) return Reply::of(dropped);
  holder.holder.reset();
  return Reply::ok();
}

Reply free_addresses(World& world, DevicePtr base, std::uint64_t size) {
  if (!base) return Reply::ok();
  MemAddressFree free;
  free.ptr = base;
  free.size = size;
  return Reply::of(world.harness_call(free));
}

Reply drop_hole(World& world, const HoleObject& hole) {
  if (!hole.keeper) return Reply::ok();
  const Reply freed = free_addresses(world, hole.keeper, hole.keeper_size);
  if (freed.success()) --world.keepers;
  return freed;
}

Reply drop_stream(World& world, std::string_view name) {
  Statement destroy;
  destroy.verb = Verb::kDestroy;
  destroy.operands.emplace_back(Name{std::string(name)});
  const Reply reply = handler_of(Verb::kDestroy)(world, destroy);
  if (reply.kind != Reply::Kind::kSkipped && !reply.success()) return reply;
  world.unbind(name);  // a default stream loses its name alone
  return Reply::ok();
}

struct Dropper {
  World& world;
  std::string_view name;
  bool unordered;
  Reply operator()(StreamObject&) { return Reply::ok(); }  // see drop_stream
  Reply operator()(EventObject& event) {
    EventDestroy destroy;
    destroy.event = event.handle;
    return Reply::of(world.harness_call(destroy));
  }
  Reply operator()(RawObject&) { return Reply::ok(); }  // the name alone goes
  Reply operator()(std::shared_ptr<ResourceObject>& resource) {
    const OriginScope scope(CallOrigin::kLibrary);
    resource.reset();
    return Reply::ok();
  }
  Reply operator()(BufferObject& buffer) { return drop_buffer(world, buffer, unordered); }
  Reply operator()(HolderObject& holder) { return drop_holder(world, holder, unordered); }
  Reply operator()(BundleObject& bundle) {
    const OriginScope scope(CallOrigin::kLibrary);
    return Reply::of(bundle.bundle->close());
  }
  Reply operator()(DecoyObject& decoy) { return free_addresses(world, decoy.base, decoy.size); }
  Reply operator()(HoleObject& hole) { return drop_hole(world, hole); }
};

}  // namespace

Reply drop_object(World& world, std::string_view name, bool unordered) {
  Object* object = world.find(name);
  if (!object) return Reply::ok();
  if (std::holds_alternative<StreamObject>(*object)) return drop_stream(world, name);
  const Reply reply = std::visit(Dropper{world, name, unordered}, *object);
  if (reply.success()) world.unbind(name);
  return reply;
}

}  // namespace granule::prop
