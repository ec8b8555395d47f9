// Addresses taken or set free on purpose: decoys, holes, probes.
#include "args.hpp"

namespace granule::prop {
namespace {

constexpr std::uint64_t kBlock = 32u << 20;  // hints are honoured in blocks of this size

/// Reserves exactly at `place`; null if the driver grants something else.
DevicePtr reserve_at(World& world, std::uint64_t place, std::uint64_t size) {
  MemAddressReserve reserve;
  reserve.size = size;
  reserve.hint.value = place;
  if (world.harness_call(reserve) != DriverStatus::kSuccess) return {};
  if (reserve.ptr.value == place) return reserve.ptr;
  MemAddressFree back;
  back.ptr = reserve.ptr;
  back.size = size;
  world.harness_call(back);
  return {};
}

/// The address behind the last reservation of a buffer; 0 if it has none.
std::uint64_t end_of(World& world, const BufferObject& buffer) {
  const std::uint64_t size = buffer.buffer->size();
  if (size == 0) return 0;
  const auto last = world.oracle().reservation_at(buffer.buffer->ptr().value + size - 1);
  return last ? last->base + last->size : 0;
}

Reply do_decoy(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  const std::string& after = s.operand<Name>(1)->text;
  const auto* buffer = world.find_as<BufferObject>(after);
  if (!buffer || buffer->buffer->is_closed()) return Reply::skipped("no buffer `" + after + "`");
  if (world.find(name)) {
    const Reply dropped = drop_object(world, name, false);
    if (!dropped.success()) return dropped;
    buffer = world.find_as<BufferObject>(after);
    if (!buffer) return Reply::skipped("no buffer `" + after + "`");
  }
  const std::uint64_t place = end_of(world, *buffer);
  if (place == 0) return Reply::skipped("no place");
  DecoyObject decoy;
  decoy.size = Args(world, s).size(2);
  decoy.base = reserve_at(world, place, decoy.size);
  if (!decoy.base) {
    decoy.size = kBlock;
    decoy.base = reserve_at(world, place, decoy.size);
  }
  if (!decoy.base) return Reply::skipped("no place");
  world.bind(name, decoy);
  return Reply::ok();
}

/// Addresses of `size` bytes in a block that is part-used, so that a small hint there is honoured.
bool make_hole_behind_keeper(World& world, HoleObject& hole) {
  const std::uint64_t granule = world.sizes.granule;
  MemAddressReserve keeper;
  keeper.size = 17 * granule;
  keeper.alignment = 16 * granule;
  if (world.harness_call(keeper) != DriverStatus::kSuccess) return false;
  hole.keeper = keeper.ptr;
  hole.keeper_size = keeper.size;
  hole.base.value = keeper.ptr.value + keeper.size;
  ++world.keepers;
  return true;
}

Reply do_hole(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  if (world.find(name)) {
    const Reply dropped = drop_object(world, name, false);
    if (!dropped.success()) return dropped;
  }
  HoleObject hole;
  hole.size = Args(world, s).size(1);
  if (hole.size == 0) return Reply::skipped("no place");
  if (hole.size <= 15 * world.sizes.granule && make_hole_behind_keeper(world, hole)) {
    world.bind(name, hole);
    return Reply::ok();
  }
  MemAddressReserve reserve;
  reserve.size = hole.size;
  const DriverStatus status = world.harness_call(reserve);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  hole.base = reserve.ptr;
  MemAddressFree back;
  back.ptr = reserve.ptr;
  back.size = reserve.size;
  world.harness_call(back);
  world.bind(name, hole);
  return Reply::ok();
}

Reply do_remove(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  if (!world.find_as<DecoyObject>(name)) {
    const bool expected = world.options.strict && !world.machine->is_model();
    if (!expected) return Reply::skipped("no decoy `" + name + "`");
    return Reply::because(Reply::Kind::kUnmet, "decoy `" + name + "` had no place");
  }
  return drop_object(world, name, false);
}

Reply do_reserve_probe(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  auto* buffer = world.find_as<BufferObject>(name);
  if (!buffer) return Reply::skipped("no buffer `" + name + "`");
  const OriginScope scope(CallOrigin::kLibrary);
  const Result<bool> could = buffer->resource->target->could_extend(*buffer->buffer);
  if (!could) return Reply::of(could.error());
  return Reply::word_of(*could ? "kept" : "moved");
}

}  // namespace

void add_place_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kDecoy, do_decoy);
  set_handler(table, Verb::kHole, do_hole);
  set_handler(table, Verb::kRemove, do_remove);
  set_handler(table, Verb::kReserveProbe, do_reserve_probe);
}

}  // namespace granule::prop
