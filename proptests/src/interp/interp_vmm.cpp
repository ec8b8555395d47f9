// Driver calls of virtual memory management, as a program writes them.
#include "args.hpp"

namespace granule::prop {

AllocationProperties Args::properties() {
  AllocationProperties properties;
  if (const Size* device = s_.value<Size>("device"))
    properties.location.id = static_cast<std::int32_t>(world_.eval(*device));
  if (const Place* place = s_.value<Place>("location"))
    properties.location = world_.location(*place).value_or(Location{});
  if (const Word* handle = s_.value<Word>("handle"))
    properties.handle_types = enum_of<HandleType>(handle->text);
  properties.type = static_cast<std::uint32_t>(size("type", properties.type));
  properties.compression = static_cast<std::uint8_t>(size("compression"));
  properties.usage = static_cast<std::uint16_t>(size("usage"));
  if (const Option* rdma = s_.option("rdma")) {
    const Word* value = s_.value<Word>("rdma");
    properties.rdma = rdma->value && value ? static_cast<std::uint8_t>(number(value->text)) : 1;
  }
  return properties;
}

AccessEntries Args::grants(std::size_t from) {
  AccessEntries entries;
  for (std::size_t i = from; i < s_.operands.size(); ++i) {
    const Grant* grant = s_.operand<Grant>(i);
    if (!grant) continue;
    AccessEntry entry;
    entry.location = world_.location(grant->place).value_or(Location{});
    entry.access = enum_of<Access>(grant->access.text);
    entries.push(entry);
  }
  return entries;
}

namespace {

Reply do_reserve(World& world, const Statement& s) {
  Args args(world, s);
  MemAddressReserve call;
  call.size = args.size(0);
  call.alignment = args.size("align");
  call.hint.value = args.address("at");
  call.flags = args.size("flags");
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.bind_raw(s, RawObject::Kind::kReservation, call.ptr.value);
  return Reply::value(call.ptr.value);
}

Reply do_address_free(World& world, const Statement& s) {
  Args args(world, s);
  MemAddressFree call;
  call.ptr.value = args.address(0);
  call.size = args.size(1);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_vmm_create(World& world, const Statement& s) {
  Args args(world, s);
  MemCreate call;
  call.size = args.size(0);
  call.properties = args.properties();
  call.flags = args.size("flags");
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.bind_raw(s, RawObject::Kind::kHandle, call.handle.value);
  return Reply::value(call.handle.value);
}

Reply do_vmm_release(World& world, const Statement& s) {
  Args args(world, s);
  MemRelease call;
  call.handle.value = args.address(0);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_retain(World& world, const Statement& s) {
  Args args(world, s);
  MemRetainAllocationHandle call;
  call.ptr.value = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.bind_raw(s, RawObject::Kind::kHandle, call.handle.value);
  return Reply::value(call.handle.value);
}

Reply do_map(World& world, const Statement& s) {
  Args args(world, s);
  MemMap call;
  call.ptr.value = args.address(0);
  call.size = args.size(1);
  call.handle.value = args.address(2);
  call.offset = args.size("offset");
  call.flags = args.size("flags");
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_unmap(World& world, const Statement& s) {
  Args args(world, s);
  MemUnmap call;
  call.ptr.value = args.address(0);
  call.size = args.size(1);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply do_vmm_set_access(World& world, const Statement& s) {
  Args args(world, s);
  MemSetAccess call;
  call.ptr.value = args.address(0);
  call.size = args.size(1);
  call.access = args.grants(2);
  if (args.missing()) return args.skip();
  return Reply::of(world.program_call(call));
}

Reply access_reply(Access access) {
  const std::string_view name = trace::spelling(access);
  return name.empty() ? Reply::value(static_cast<std::uint64_t>(access)) : Reply::word_of(name);
}

Reply do_vmm_get_access(World& world, const Statement& s) {
  Args args(world, s);
  MemGetAccess call;
  call.ptr.value = args.address(0);
  call.location = args.place(1);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  return status == DriverStatus::kSuccess ? access_reply(call.access) : Reply::of(status);
}

Reply do_granularity(World& world, const Statement& s) {
  Args args(world, s);
  MemGetAllocationGranularity call;
  call.properties = args.properties();
  call.option = args.word<GranularityKind>(0);
  const DriverStatus status = world.program_call(call);
  return status == DriverStatus::kSuccess ? Reply::value(call.granularity) : Reply::of(status);
}

Reply do_properties(World& world, const Statement& s) {
  Args args(world, s);
  MemGetAllocationPropertiesFromHandle call;
  call.handle.value = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  const AllocationProperties& found = call.properties;
  const std::string& field = s.operand<Word>(1)->text;
  if (field == "type") return Reply::value(found.type);
  if (field == "handle_types") return Reply::value(static_cast<std::uint64_t>(found.handle_types));
  if (field == "location_type")
    return Reply::value(static_cast<std::uint64_t>(found.location.type));
  if (field == "location_id") return Reply::value(static_cast<std::uint64_t>(found.location.id));
  if (field == "compression") return Reply::value(found.compression);
  if (field == "rdma") return Reply::value(found.rdma);
  return Reply::value(found.usage);
}

Reply do_vmm_export(World& world, const Statement& s) {
  Args args(world, s);
  MemExportToShareableHandle call;
  call.handle.value = args.address(0);
  call.type = args.word<HandleType>(1);
  call.flags = args.size("flags");
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.descriptors.push_back(call.descriptor);
  world.bind_raw(s, RawObject::Kind::kDescriptor,
                 static_cast<std::uint64_t>(static_cast<std::int64_t>(call.descriptor.value)));
  return Reply::ok();
}

Reply do_vmm_import(World& world, const Statement& s) {
  Args args(world, s);
  MemImportFromShareableHandle call;
  call.descriptor.value = static_cast<std::int32_t>(args.address(0));
  call.type = args.word<HandleType>(1);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.bind_raw(s, RawObject::Kind::kHandle, call.handle.value);
  return Reply::value(call.handle.value);
}

}  // namespace

void add_vmm_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kCuMemAddressReserve, do_reserve);
  set_handler(table, Verb::kCuMemAddressFree, do_address_free);
  set_handler(table, Verb::kCuMemCreate, do_vmm_create);
  set_handler(table, Verb::kCuMemRelease, do_vmm_release);
  set_handler(table, Verb::kCuMemRetainAllocationHandle, do_retain);
  set_handler(table, Verb::kCuMemMap, do_map);
  set_handler(table, Verb::kCuMemUnmap, do_unmap);
  set_handler(table, Verb::kCuMemSetAccess, do_vmm_set_access);
  set_handler(table, Verb::kCuMemGetAccess, do_vmm_get_access);
  set_handler(table, Verb::kCuMemGetAllocationGranularity, do_granularity);
  set_handler(table, Verb::kCuMemGetAllocationPropertiesFromHandle, do_properties);
  set_handler(table, Verb::kCuMemExportToShareableHandle, do_vmm_export);
  set_handler(table, Verb::kCuMemImportFromShareableHandle, do_vmm_import);
}

}  // namespace granule::prop
