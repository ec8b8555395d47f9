// Driver calls of plain memory, copies, fills, kernels and pointer queries.
#include <algorithm>

#include "args.hpp"

namespace granule::prop {

void disturb_buffers(World& world, std::uint64_t address, std::uint64_t size) {
  for (auto& [name, object] : world.objects) {
    auto* buffer = std::get_if<BufferObject>(&object);
    if (!buffer || !buffer->buffer || buffer->buffer->is_closed()) continue;
    const std::uint64_t base = buffer->buffer->ptr().value;
    const std::uint64_t end = base + buffer->buffer->size();
    if (address >= end || base >= address + size) continue;
    const std::uint64_t from = std::max(address, base) - base;
    const std::uint64_t to = std::min(address + size, end) - base;
    for (const Part& part : parts_of(buffer->segments, from, to))
      part.extent->forget(part.begin, part.end);
  }
}

namespace {

Reply do_get_info(World& world, const Statement&) {
  MemGetInfo call;
  const DriverStatus status = world.program_call(call);
  return status == DriverStatus::kSuccess ? Reply::pair(call.free, call.total) : Reply::of(status);
}

Reply do_alloc(World& world, const Statement& s) {
  MemAlloc call;
  call.size = Args(world, s).size(0);
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.plain.push_back(call.ptr.value);
  world.bind_raw(s, RawObject::Kind::kPlain, call.ptr.value);
  return Reply::value(call.ptr.value);
}

Reply do_memory_free(World& world, const Statement& s) {
  Args args(world, s);
  MemFree call;
  call.ptr.value = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status == DriverStatus::kSuccess) {
    std::erase(world.plain, call.ptr.value);
    std::erase(world.blocks, call.ptr.value);
    world.timeline.host_learns_all();  // it waits for the device
  }
  return Reply::of(status);
}

Reply do_alloc_host(World& world, const Statement& s) {
  MemAllocHost call;
  call.size = Args(world, s).size(0);
  const DriverStatus status = world.program_call(call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  world.pinned.push_back(call.host);
  world.bind_raw(s, RawObject::Kind::kPinned, call.host);
  return Reply::value(call.host);
}

Reply do_free_host(World& world, const Statement& s) {
  Args args(world, s);
  MemFreeHost call;
  call.host = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  if (status == DriverStatus::kSuccess) std::erase(world.pinned, call.host);
  return Reply::of(status);
}

Reply do_address_range(World& world, const Statement& s) {
  Args args(world, s);
  MemGetAddressRange call;
  call.ptr.value = args.address(0);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  return status == DriverStatus::kSuccess ? Reply::pair(call.base.value, call.size)
                                          : Reply::of(status);
}

template <class C>
Reply pointer_query(World& world, const Statement& s) {
  Args args(world, s);
  C call;
  call.ptr.value = args.address(0);
  call.attribute = args.word<PointerAttribute>(1);
  if (args.missing()) return args.skip();
  const DriverStatus status = world.program_call(call);
  return status == DriverStatus::kSuccess ? Reply::value(call.value) : Reply::of(status);
}

/// A fill or copy, in its Async form where the statement names a stream.
template <class Sync, class Async, class Fill>
Reply memory_call(World& world, const Statement& s, Fill&& fill) {
  Args args(world, s);
  if (!args.has_stream()) {
    Sync call;
    fill(args, call);
    return args.missing() ? args.skip() : Reply::of(world.program_call(call));
  }
  Async call;
  fill(args, call);
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  return Reply::of(program_call_on(world, *stream, call));
}

Reply do_memset8(World& world, const Statement& s) {
  return memory_call<MemsetD8, MemsetD8Async>(world, s, [&](Args& args, auto& call) {
    call.ptr.value = args.address(0);
    call.value = args.byte(1);
    call.size = args.size(2);
    disturb_buffers(world, call.ptr.value, call.size);
  });
}

Reply do_memset32(World& world, const Statement& s) {
  return memory_call<MemsetD32, MemsetD32Async>(world, s, [&](Args& args, auto& call) {
    call.ptr.value = args.address(0);
    call.value = args.byte(1) * 0x01010101u;
    call.size = args.size(2);
    disturb_buffers(world, call.ptr.value, call.size);
  });
}

Reply do_copy_to_device(World& world, const Statement& s) {
  return memory_call<MemcpyHtoD, MemcpyHtoDAsync>(world, s, [&](Args& args, auto& call) {
    call.dst.value = args.address(0);
    call.src.pattern = args.byte(1);
    call.size = args.size(2);
    disturb_buffers(world, call.dst.value, call.size);
  });
}

Reply do_copy_between(World& world, const Statement& s) {
  return memory_call<MemcpyDtoD, MemcpyDtoDAsync>(world, s, [&](Args& args, auto& call) {
    call.dst.value = args.address(0);
    call.src.value = args.address(1);
    call.size = args.size(2);
    disturb_buffers(world, call.dst.value, call.size);
  });
}

Reply do_memory_copy(World& world, const Statement& s) {
  Args args(world, s);
  Memcpy call;
  call.dst.value = args.address(0);
  call.src.value = args.address(1);
  call.size = args.size(2);
  if (args.missing()) return args.skip();
  disturb_buffers(world, call.dst.value, call.size);
  return Reply::of(world.program_call(call));
}

Reply found_reply(const ByteSummary& found) {
  if (found.kind == ByteSummary::Kind::kUniform) return Reply::value(found.byte);
  return Reply::word_of(found.kind == ByteSummary::Kind::kMixed ? "mixed" : "unknown");
}

/// The byte that the statement expects to read, or nothing.
std::optional<std::uint8_t> expected_byte(World& world, const Statement& s) {
  if (s.expected.size() != 1 || s.expected[0].kind != Outcome::Kind::kValues ||
      s.expected[0].values.size() != 1)
    return std::nullopt;
  const auto value = world.address(s.expected[0].values[0]);
  if (!value || *value > 255) return std::nullopt;
  return static_cast<std::uint8_t>(*value);
}

Reply do_copy_to_host(World& world, const Statement& s) {
  Args args(world, s);
  if (!args.has_stream()) {
    MemcpyDtoH call;
    call.src.value = args.address(0);
    call.size = args.size(1);
    if (args.missing()) return args.skip();
    const DriverStatus status = world.program_call(call);
    return status == DriverStatus::kSuccess ? found_reply(call.found) : Reply::of(status);
  }
  MemcpyDtoHAsync call;
  call.src.value = args.address(0);
  call.size = args.size(1);
  call.landing = world.next_landing;
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  ++world.next_landing;
  const auto byte = expected_byte(world, s);
  if (!byte) return Reply::ok();
  world.landings.push_back({call.landing, *byte, world.statement});
  return Reply::value(*byte);
}

std::uint64_t time_of(const Statement& s) {
  const Duration* time = s.value<Duration>("for");
  return time ? time->nanoseconds : 0;
}

Reply do_kernel_write(World& world, const Statement& s) {
  Args args(world, s);
  LaunchKernel call;
  call.kind = KernelKind::kWrite;
  call.ptr.value = args.address(0);
  call.value = args.byte(1);
  call.size = args.size(2);
  call.duration_ns = time_of(s);
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  disturb_buffers(world, call.ptr.value, call.size);
  return Reply::of(program_call_on(world, *stream, call));
}

Reply do_kernel_read(World& world, const Statement& s) {
  Args args(world, s);
  const Byte* byte = s.operand<Byte>(1);
  LaunchKernel call;
  call.kind = KernelKind::kRead;
  call.ptr.value = args.address(0);
  call.size = args.size(byte ? 2 : 1);
  call.duration_ns = time_of(s);
  if (byte) call.landing = world.next_landing;
  StreamObject* stream = args.stream();
  if (args.missing()) return args.skip();
  const DriverStatus status = program_call_on(world, *stream, call);
  if (status == DriverStatus::kSuccess && byte) {
    ++world.next_landing;
    world.landings.push_back({call.landing, byte->value, world.statement});
  }
  return Reply::of(status);
}

}  // namespace

void add_memory_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kCuMemGetInfo, do_get_info);
  set_handler(table, Verb::kCuMemAlloc, do_alloc);
  set_handler(table, Verb::kCuMemFree, do_memory_free);
  set_handler(table, Verb::kCuMemAllocHost, do_alloc_host);
  set_handler(table, Verb::kCuMemFreeHost, do_free_host);
  set_handler(table, Verb::kCuMemGetAddressRange, do_address_range);
  set_handler(table, Verb::kCuPointerGetAttribute, pointer_query<PointerGetAttribute>);
  set_handler(table, Verb::kCuPointerGetAttributes, pointer_query<PointerGetAttributes>);
  set_handler(table, Verb::kCuMemsetD8, do_memset8);
  set_handler(table, Verb::kCuMemsetD32, do_memset32);
  set_handler(table, Verb::kCuMemcpyHtoD, do_copy_to_device);
  set_handler(table, Verb::kCuMemcpyDtoH, do_copy_to_host);
  set_handler(table, Verb::kCuMemcpyDtoD, do_copy_between);
  set_handler(table, Verb::kCuMemcpy, do_memory_copy);
  set_handler(table, Verb::kKernelWrite, do_kernel_write);
  set_handler(table, Verb::kKernelRead, do_kernel_read);
}

}  // namespace granule::prop
