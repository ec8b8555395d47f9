// Driver calls of stream-ordered pools.
#include <algorithm>

#include "args.hpp"

namespace granule::prop {
namespace {

Reply do_create(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolCreate call;
  call.properties = args.properties();
  call.max_size = args.size("max");
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.pools.push_back(call.pool);
  world.bind_raw(s, RawObject::Kind::kPool, call.pool.value);
  return Reply::ok();
}

Reply do_destroy(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolDestroy call;
  call.pool.value = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status == DriverStatus::kSuccess) std::erase(world.pools, call.pool);
  return Reply::of(status);
}

Reply do_trim(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolTrimTo call;
  call.pool.value = args.address(0);
  call.keep = args.size(1);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_set_attribute(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolSetAttribute call;
  call.pool.value = args.address(0);
  call.attribute = args.word<PoolAttribute>(1);
  call.value = args.size(2);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_get_attribute(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolGetAttribute call;
  call.pool.value = args.address(0);
  call.attribute = args.word<PoolAttribute>(1);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  return status == DriverStatus::kSuccess ? Reply::value(call.value) : Reply::of(status);
}

Reply do_set_access(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolSetAccess call;
  call.pool.value = args.address(0);
  call.access = args.grants(1);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_get_access(World& world, const Statement& s) {
  Args args(world, s);
  MemPoolGetAccess call;
  call.pool.value = args.address(0);
  call.location = args.place(1);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  const std::string_view name = trace::spelling(call.access);
  return name.empty() ? Reply::value(static_cast<std::uint64_t>(call.access))
                      : Reply::word_of(name);
}

/// What a pool allocation gave: a block to be freed by the end, unless it is null or captured.
Reply block_reply(World& world, const Statement& s, const StreamObject& stream, DriverStatus status,
                  DevicePtr ptr) {
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  if (ptr && !world.is_capturing(stream.lane)) world.blocks.push_back(ptr.value);
  world.bind_raw(s, RawObject::Kind::kBlock, ptr.value);
  return Reply::value(ptr.value);
}

Reply do_pool_alloc(World& world, const Statement& s) {
  Args args(world, s);
  MemAllocAsync call;
  call.size = args.size(0);
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  return block_reply(world, s, *stream, status, call.ptr);
}

Reply do_alloc_from_pool(World& world, const Statement& s) {
  Args args(world, s);
  MemAllocFromPoolAsync call;
  call.size = args.size(0);
  call.pool.value = args.address(1);
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  return block_reply(world, s, *stream, status, call.ptr);
}

Reply do_pool_free(World& world, const Statement& s) {
  Args args(world, s);
  MemFreeAsync call;
  call.ptr.value = args.address(0);
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  if (status == DriverStatus::kSuccess && !world.is_capturing(stream->lane)) {
    std::erase(world.blocks, call.ptr.value);
    std::erase(world.plain, call.ptr.value);
  }
  return Reply::of(status);
}

template <class C>
Reply pool_of_device(World& world, const Statement& s) {
  C call;
  call.device.value = static_cast<std::int32_t>(Args(world, s).size(0));
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.bind_raw(s, RawObject::Kind::kPool, call.pool.value);
  return Reply::value(call.pool.value);
}

Reply do_set_pool(World& world, const Statement& s) {
  Args args(world, s);
  DeviceSetMemPool call;
  call.device.value = static_cast<std::int32_t>(args.size(0));
  call.pool.value = args.address(1);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

}  // namespace

void add_pool_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kCuMemPoolCreate, do_create);
  set_handler(table, Verb::kCuMemPoolDestroy, do_destroy);
  set_handler(table, Verb::kCuMemPoolTrimTo, do_trim);
  set_handler(table, Verb::kCuMemPoolSetAttribute, do_set_attribute);
  set_handler(table, Verb::kCuMemPoolGetAttribute, do_get_attribute);
  set_handler(table, Verb::kCuMemPoolSetAccess, do_set_access);
  set_handler(table, Verb::kCuMemPoolGetAccess, do_get_access);
  set_handler(table, Verb::kCuMemAllocAsync, do_pool_alloc);
  set_handler(table, Verb::kCuMemAllocFromPoolAsync, do_alloc_from_pool);
  set_handler(table, Verb::kCuMemFreeAsync, do_pool_free);
  set_handler(table, Verb::kCuDeviceGetDefaultMemPool, pool_of_device<DeviceGetDefaultMemPool>);
  set_handler(table, Verb::kCuDeviceGetMemPool, pool_of_device<DeviceGetMemPool>);
  set_handler(table, Verb::kCuDeviceSetMemPool, do_set_pool);
}

}  // namespace granule::prop
