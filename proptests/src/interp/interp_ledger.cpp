// Checks of what is held: free memory, reservations, handles, mappings, access, sizes, statistics.
#include "args.hpp"

namespace granule::prop {
namespace {

Reply compare(std::int64_t wanted, std::int64_t found) {
  if (wanted == found) return Reply::ok();
  return Reply::failed("expected " + std::to_string(wanted) + ", found " + std::to_string(found));
}

std::int64_t wanted(World& world, const Statement& s, std::size_t index = 0) {
  return static_cast<std::int64_t>(Args(world, s).size(index));
}

Reply do_free(World& world, const Statement& s) {
  const auto device = static_cast<std::size_t>(Args(world, s).size("device"));
  if (device >= world.free_at_start.size()) return Reply::skipped("no such device");
  const std::uint64_t now = world.oracle().free_bytes(static_cast<std::int32_t>(device));
  return compare(wanted(world, s), static_cast<std::int64_t>(now - world.free_at_start[device]));
}

template <std::int64_t Holdings::*kField>
Reply do_held(World& world, const Statement& s) {
  return compare(wanted(world, s), counted_holdings(world).*kField);
}

Reply do_leak(World& world, const Statement&) {
  const Holdings held = counted_holdings(world);
  std::string left;
  const auto note = [&](std::int64_t count, std::string_view what) {
    if (count != 0) left += " " + std::to_string(count) + " " + std::string(what) + ",";
  };
  note(held.reservations, "reservations");
  note(held.handles, "handles");
  note(held.mappings, "mappings");
  note(held.descriptors, "descriptors");
  for (std::size_t i = 0; i < world.free_at_start.size(); ++i) {
    const std::uint64_t now = world.oracle().free_bytes(static_cast<std::int32_t>(i));
    note(static_cast<std::int64_t>(world.free_at_start[i] - now), "bytes");
  }
  if (left.empty()) return Reply::ok();
  left.pop_back();
  return Reply::failed("still held:" + left);
}

Reply do_access(World& world, const Statement& s) {
  const Range& range = *s.operand<Range>(0);
  const auto* buffer = world.find_as<BufferObject>(range.name);
  if (!buffer) return Reply::skipped("no buffer `" + range.name + "`");
  const std::uint64_t size = buffer->buffer->size();
  const std::uint64_t from = range.whole ? 0 : world.eval(range.from);
  const std::uint64_t to = !range.whole && range.to ? world.eval(*range.to) : size;
  if (from >= to || to > size) return Reply::skipped("nothing in that range");
  const std::string& access = s.operand<Word>(2)->text;
  const std::uint64_t base = buffer->buffer->ptr().value;
  for (const auto& mapping : world.oracle().mappings_in(base + from, to - from)) {
    MemGetAccess call;
    call.ptr.value = std::max(mapping.base, base + from);
    call.location = Args(world, s).place(1);
    const DriverStatus status = world.harness_call(call);
    if (status != DriverStatus::kSuccess)
      return Reply::failed("expected " + access + ", found " + std::string(name_of(status)));
    if (trace::spelling(call.access) == access) continue;
    return Reply::failed("expected " + access + ", found " +
                         std::string(trace::spelling(call.access)) + " at byte " +
                         std::to_string(call.ptr.value - base));
  }
  return Reply::ok();
}

Reply do_size(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  const auto* buffer = world.find_as<BufferObject>(name);
  if (!buffer) return Reply::skipped("no buffer `" + name + "`");
  return compare(wanted(world, s, 1), static_cast<std::int64_t>(buffer->buffer->size()));
}

Reply do_stat(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  const auto* resource = world.find_as<std::shared_ptr<ResourceObject>>(name);
  if (!resource) return Reply::skipped("no resource `" + name + "`");
  const std::string& field = s.operand<Word>(1)->text;
  const OriginScope scope(CallOrigin::kHarness);
  const auto found = (*resource)->target->stat(field);
  if (!found) return Reply::skipped("the resource keeps no figure `" + field + "`");
  return compare(wanted(world, s, 2), static_cast<std::int64_t>(*found));
}

}  // namespace

Holdings counted_holdings(const World& world) {
  Holdings held =
      world.tap->held_by(CallOrigin::kLibrary) + world.tap->held_by(CallOrigin::kProgram);
  const Holdings& own = world.tap->held_by(CallOrigin::kHarness);
  held.reservations += own.reservations - static_cast<std::int64_t>(world.keepers);
  return held;
}

void add_ledger_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kExpectFree, do_free);
  set_handler(table, Verb::kExpectReservations, do_held<&Holdings::reservations>);
  set_handler(table, Verb::kExpectHandles, do_held<&Holdings::handles>);
  set_handler(table, Verb::kExpectMappings, do_held<&Holdings::mappings>);
  set_handler(table, Verb::kExpectMapped, do_held<&Holdings::mapped_bytes>);
  set_handler(table, Verb::kExpectLeak, do_leak);
  set_handler(table, Verb::kExpectAccess, do_access);
  set_handler(table, Verb::kExpectSize, do_size);
  set_handler(table, Verb::kExpectStat, do_stat);
}

}  // namespace granule::prop
