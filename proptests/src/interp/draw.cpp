// A drawing of the address space in text: one line a granule run, with the buffers that see it.
#include <algorithm>
#include <cstdio>
#include <map>

#include "world.hpp"

namespace granule::prop {
namespace {

std::string hex(std::uint64_t value) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%012llx", static_cast<unsigned long long>(value));
  return buffer;
}

std::string amount(std::uint64_t bytes, std::uint64_t granule) {
  if (granule != 0 && bytes % granule == 0) return std::to_string(bytes / granule) + "g";
  return std::to_string(bytes) + "B";
}

/// Names of the live buffers over [base, base + size), and whose place it is otherwise.
std::string names_at(const World& world, std::uint64_t base, std::uint64_t size) {
  std::string names;
  for (const auto& [name, object] : world.objects) {
    std::uint64_t start = 0;
    std::uint64_t length = 0;
    if (const auto* buffer = std::get_if<BufferObject>(&object)) {
      if (!buffer->buffer || buffer->buffer->is_closed()) continue;
      start = buffer->buffer->ptr().value;
      length = buffer->buffer->size();
    } else if (const auto* decoy = std::get_if<DecoyObject>(&object)) {
      start = decoy->base.value;
      length = decoy->size;
    } else if (const auto* raw = std::get_if<RawObject>(&object)) {
      if (raw->kind != RawObject::Kind::kReservation) continue;
      start = raw->value;
      length = 1;
    }
    if (length == 0 || start >= base + size || base >= start + length) continue;
    names += (names.empty() ? " " : ", ") + name;
  }
  return names;
}

std::string bar(std::uint64_t bytes, std::uint64_t granule, char fill) {
  constexpr std::uint64_t kWidest = 32;
  const std::uint64_t cells = granule == 0 ? 1 : std::max<std::uint64_t>(1, bytes / granule);
  std::string text(static_cast<std::size_t>(std::min(cells, kWidest)), fill);
  if (cells > kWidest) text += "~";
  return text;
}

}  // namespace

std::string draw(const World& world) {
  model::DriverState& oracle = world.machine->oracle();
  const std::uint64_t granule = world.sizes.granule;
  std::map<std::uint64_t, char> letters;  // a letter for each physical allocation
  std::string text = "addresses (1g = " + std::to_string(granule >> 10) +
                     " KiB; . reserved, A B ... mapped memory by allocation)\n";
  for (const auto& reservation : oracle.reservations()) {
    text += hex(reservation.base) + "  reserved " + amount(reservation.size, granule) +
            names_at(world, reservation.base, reservation.size) + "\n  ";
    std::uint64_t at = reservation.base;
    std::string details;
    for (const auto& mapping : oracle.mappings_in(reservation.base, reservation.size)) {
      if (mapping.base > at) text += bar(mapping.base - at, granule, '.');
      const auto letter =
          letters.emplace(mapping.allocation, static_cast<char>('A' + letters.size() % 26)).first;
      text += bar(mapping.size, granule, letter->second);
      details += std::string("  ") + letter->second + " +" +
                 amount(mapping.base - reservation.base, granule) + " " +
                 amount(mapping.size, granule) + names_at(world, mapping.base, mapping.size) + "\n";
      at = mapping.base + mapping.size;
    }
    if (at < reservation.base + reservation.size)
      text += bar(reservation.base + reservation.size - at, granule, '.');
    text += "\n" + details;
  }
  const model::Ledger ledger = oracle.ledger();
  text += std::to_string(ledger.reservations) + " reservations, " +
          std::to_string(ledger.mappings) + " mappings, " +
          std::to_string(ledger.handle_references) + " handles, " +
          amount(ledger.allocated_bytes, granule) + " of memory\n";
  return text;
}

}  // namespace granule::prop
