// A drawing of the address space in text: a line a reservation, with the buffers that see it.
#include <algorithm>
#include <cstdio>

#include <granule/prop/snapshot.hpp>

namespace granule::prop {
namespace {

/// Names of what lies over [base, end), as " a, b"; of a whole row also those of its reservation.
std::string names_over(const Row& row, std::uint64_t base, std::uint64_t end, bool whole) {
  std::string names;
  for (const Viewer& viewer : row.viewers) {
    if (viewer.base >= end || base >= viewer.end()) continue;
    if (!whole && viewer.kind == Viewer::Kind::kReservation) continue;
    names += (names.empty() ? " " : ", ") + viewer.name;
    if (viewer.suspended) names += " (suspended)";
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

/// "rw" for the memory's own device alone, "rw|r|-" where there are more who could have access.
std::string access_text(const Snapshot& shot, const Piece& piece) {
  std::string text;
  for (const Access access : piece.access)
    text += (text.empty() ? "" : "|") + std::string(name_of(access));
  return shot.accessors.size() == 1 && text == "rw" ? "" : " " + text;
}

std::string line_of(const Snapshot& shot, const Row& row, const Piece& piece) {
  std::string text = "  " + (piece.memory.empty() ? "*" : piece.memory) + " +" +
                     amount_text(piece.base - row.base, shot.granule) + " " +
                     amount_text(piece.size, shot.granule);
  if (!piece.access.empty()) text += access_text(shot, piece);
  if (piece.use == Use::kQuarantined) text += " quarantined";
  if (piece.freed) text += " freed behind unfinished work";
  return text + names_over(row, piece.base, piece.end(), false) + "\n";
}

std::string text_of(const Snapshot& shot, const Row& row) {
  std::string text = address_text(row.base) + "  ";
  switch (row.kind) {
    case Row::Kind::kReservation:
      text += "reserved " + amount_text(row.size, shot.granule) +
              names_over(row, row.base, row.end(), true) + "\n  ";
      break;
    case Row::Kind::kPlain:
      text += "plain memory\n";
      break;
    case Row::Kind::kPool:
      text += "pool blocks\n";
      break;
  }
  std::uint64_t at = row.base;
  std::string bars;
  std::string details;
  for (const Piece& piece : row.pieces) {
    if (piece.base > at) bars += bar(piece.base - at, shot.granule, '.');
    bars += bar(piece.size, shot.granule, piece.memory.empty() ? '*' : piece.memory.back());
    details += line_of(shot, row, piece);
    at = piece.end();
  }
  if (at < row.end()) bars += bar(row.end() - at, shot.granule, '.');
  if (row.kind == Row::Kind::kReservation) text += bars + "\n";
  return text + details;
}

}  // namespace

std::string_view name_of(Access access) noexcept {
  switch (access) {
    case Access::kNone:
      return "-";
    case Access::kRead:
      return "r";
    case Access::kReadWrite:
      return "rw";
  }
  return "?";
}

std::string to_text(const Location& location) {
  switch (location.type) {
    case LocationType::kDevice:
      return "device:" + std::to_string(location.id);
    case LocationType::kHost:
      return "host";
    case LocationType::kHostNuma:
      return "host_numa:" + std::to_string(location.id);
    case LocationType::kHostNumaCurrent:
      return "host_numa_current";
    case LocationType::kInvalid:
      break;
  }
  return "nowhere";
}

std::string address_text(std::uint64_t address) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "0x%012llx", static_cast<unsigned long long>(address));
  return buffer;
}

std::string amount_text(std::uint64_t bytes, std::uint64_t granule) {
  if (granule != 0 && bytes % granule == 0) return std::to_string(bytes / granule) + "g";
  return std::to_string(bytes) + "B";
}

std::string totals_text(const Snapshot& shot) {
  const model::Ledger& ledger = shot.ledger;
  return std::to_string(ledger.reservations) + " reservations, " + std::to_string(ledger.mappings) +
         " mappings, " + std::to_string(ledger.handle_references) + " handles, " +
         amount_text(ledger.allocated_bytes, shot.granule) + " of memory";
}

std::string loose_text(const Snapshot& shot) {
  constexpr std::size_t kMostNamed = 12;
  std::string text;
  for (std::size_t i = 0; i < std::min(shot.loose.size(), kMostNamed); ++i)
    text += (i == 0 ? "mapped nowhere, kept by handles: " : ", ") + shot.loose[i].memory + " " +
            amount_text(shot.loose[i].size, shot.granule);
  if (shot.loose.size() > kMostNamed)
    text += " and " + std::to_string(shot.loose.size() - kMostNamed) + " more";
  return text;
}

std::string draw(const Snapshot& shot) {
  std::string text = "addresses (1g = " + std::to_string(shot.granule >> 10) +
                     " KiB; . reserved, A B ... mapped memory by allocation";
  if (shot.accessors.size() > 1) {
    text += "; access of ";
    for (const Location& who : shot.accessors)
      text += (who == shot.accessors.front() ? "" : "|") + to_text(who);
  }
  text += ")\n";
  for (const Row& row : shot.rows) text += text_of(shot, row);
  if (!shot.loose.empty()) text += loose_text(shot) + "\n";
  return text + totals_text(shot) + "\n";
}

}  // namespace granule::prop
