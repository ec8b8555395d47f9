// Interval bookkeeping of written patterns.
#include "shadow.hpp"

#include <algorithm>

namespace granule::prop {

void Extent::cut(std::uint64_t at) {
  for (std::size_t i = 0; i < cells_.size(); ++i) {
    if (at <= cells_[i].begin || at >= cells_[i].end) continue;
    Cell right = cells_[i];
    right.begin = at;
    cells_[i].end = at;
    cells_.insert(cells_.begin() + static_cast<std::ptrdiff_t>(i) + 1, std::move(right));
    return;
  }
}

void Extent::merge() {
  std::size_t kept = 0;
  for (std::size_t i = 1; i < cells_.size(); ++i) {
    if (cells_[kept].value == cells_[i].value && cells_[kept].writers == cells_[i].writers &&
        cells_[kept].sources == cells_[i].sources) {
      cells_[kept].end = cells_[i].end;
    } else {
      ++kept;
      if (kept != i) cells_[kept] = std::move(cells_[i]);
    }
  }
  if (!cells_.empty()) cells_.resize(kept + 1);
}

std::vector<Stamp> Extent::disturbed(std::uint64_t begin, std::uint64_t end, const Clock& clock,
                                     const Clock& host) {
  std::erase_if(readers_, [&](const Reader& r) { return host.covers(r.stamp); });
  std::vector<Stamp> hit;
  for (const Reader& reader : readers_)
    if (reader.end > begin && reader.begin < end && !clock.covers(reader.stamp))
      hit.push_back(reader.stamp);
  return hit;
}

std::vector<Stamp> Extent::write(std::uint64_t begin, std::uint64_t end,
                                 std::optional<std::uint8_t> value, const Stamp& op,
                                 const Clock& clock, const Clock& host,
                                 const std::vector<Stamp>& from) {
  if (begin >= end) return {};
  touch(op);
  std::vector<Stamp> hit = disturbed(begin, end, clock, host);
  cut(begin);
  cut(end);
  for (Cell& cell : cells_) {
    if (cell.end <= begin || cell.begin >= end) continue;
    std::erase_if(cell.writers, [&](const Stamp& w) { return clock.covers(w); });
    cell.value = cell.writers.empty() ? value : std::nullopt;
    cell.writers.push_back(op);
    cell.sources.assign(1, op);
    for (const Stamp& source : from)
      if (!host.covers(source)) cell.sources.push_back(source);
  }
  merge();
  return hit;
}

std::vector<Stamp> Extent::rewrite(std::uint64_t begin, std::uint64_t end, const Stamp& op,
                                   const Clock& clock, const Clock& host) {
  if (begin >= end) return {};
  touch(op);
  std::vector<Stamp> hit = disturbed(begin, end, clock, host);
  cut(begin);
  cut(end);
  for (Cell& cell : cells_) {
    if (cell.end <= begin || cell.begin >= end) continue;
    std::erase_if(cell.writers, [&](const Stamp& w) { return clock.covers(w); });
    if (!cell.writers.empty()) cell.value = std::nullopt;
    cell.writers.push_back(op);
    std::erase_if(cell.sources, [&](const Stamp& source) { return host.covers(source); });
    cell.sources.push_back(op);
  }
  merge();
  return hit;
}

void Extent::forget(std::uint64_t begin, std::uint64_t end) {
  if (begin >= end) return;
  cut(begin);
  cut(end);
  for (Cell& cell : cells_) {
    if (cell.end <= begin || cell.begin >= end) continue;
    cell.value = std::nullopt;
  }
  merge();
}

void Extent::spoil(const Stamp& op) {
  for (Cell& cell : cells_)
    if (std::find(cell.sources.begin(), cell.sources.end(), op) != cell.sources.end())
      cell.value = std::nullopt;
}

void Extent::touch(const Stamp& op) {
  for (Stamp& use : uses_) {
    if (use.lane != op.lane) continue;
    use.count = std::max(use.count, op.count);
    return;
  }
  uses_.push_back(op);
}

std::vector<Part> parts_of(const std::vector<Segment>& segments, std::uint64_t from,
                           std::uint64_t to) {
  std::vector<Part> parts;
  std::uint64_t at = 0;
  for (const Segment& segment : segments) {
    const std::uint64_t begin = std::max(from, at);
    const std::uint64_t end = std::min(to, at + segment.length);
    if (begin < end)
      parts.push_back({segment.extent.get(), segment.offset + (begin - at),
                       segment.offset + (end - at), begin});
    at += segment.length;
  }
  return parts;
}

std::vector<Known> known_of(const std::vector<Segment>& segments, std::uint64_t from,
                            std::uint64_t to, const Clock& host) {
  std::vector<Known> runs;
  for (const Part& part : parts_of(segments, from, to)) {
    for (const Extent::Cell& cell : part.extent->cells()) {
      const std::uint64_t begin = std::max(cell.begin, part.begin);
      const std::uint64_t end = std::min(cell.end, part.end);
      if (begin >= end) continue;
      const bool settled = std::all_of(cell.writers.begin(), cell.writers.end(),
                                       [&](const Stamp& w) { return host.covers(w); });
      const std::uint64_t start = part.offset + (begin - part.begin);
      runs.push_back({start, start + (end - begin), cell.value, settled});
    }
  }
  return runs;
}

}  // namespace granule::prop
