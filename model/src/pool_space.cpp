// Span sets and the free map of a pool's window.
#include "pool_space.hpp"

#include <algorithm>
#include <iterator>

namespace granule::model {

void SpanSet::insert(Span span) {
  if (span.begin >= span.end) return;
  erase(span);
  total_ += span.size();
  auto next = spans_.lower_bound(span.begin);
  if (next != spans_.end() && next->first == span.end) {
    span.end = next->second;
    next = spans_.erase(next);
  }
  if (next != spans_.begin()) {
    const auto before = std::prev(next);
    if (before->second == span.begin) {
      before->second = span.end;
      return;
    }
  }
  spans_[span.begin] = span.end;
}

void SpanSet::erase(Span span) {
  auto it = spans_.upper_bound(span.begin);
  if (it != spans_.begin()) --it;
  while (it != spans_.end() && it->first < span.end) {
    const Span old{it->first, it->second};
    const Span cut{std::max(old.begin, span.begin), std::min(old.end, span.end)};
    if (cut.begin >= cut.end) {
      ++it;
      continue;
    }
    total_ -= cut.size();
    it = spans_.erase(it);
    if (old.begin < cut.begin) spans_[old.begin] = cut.begin;
    if (cut.end < old.end) it = std::next(spans_.emplace(cut.end, old.end).first);
  }
}

bool SpanSet::contains(Span span) const { return missing(span).empty(); }

std::vector<Span> SpanSet::missing(Span span) const {
  std::vector<Span> gaps;
  auto it = spans_.upper_bound(span.begin);
  if (it != spans_.begin()) --it;
  std::uint64_t at = span.begin;
  for (; it != spans_.end() && it->first < span.end; ++it) {
    if (it->second <= at) continue;
    if (it->first > at) gaps.push_back({at, it->first});
    at = it->second;
  }
  if (at < span.end) gaps.push_back({at, span.end});
  return gaps;
}

FreeMap::Iterator FreeMap::split(std::uint64_t at) {
  auto it = extents_.lower_bound(at);
  if (it != extents_.end() && it->first == at) return it;
  if (it == extents_.begin()) return it;
  const auto before = std::prev(it);
  if (before->second.end <= at) return it;
  const Extent rest = before->second;
  before->second.end = at;
  return extents_.emplace_hint(it, at, rest);
}

FreeMap::Iterator FreeMap::merge_with_next(Iterator it) {
  const auto next = std::next(it);
  if (next == extents_.end() || next->first != it->second.end) return it;
  auto& freed = it->second.freed;
  const auto& other = next->second.freed;
  const bool of_one_stream = freed && other && freed->stream == other->stream;
  if (freed != other && !of_one_stream) return it;
  // Measured: neighbours that one stream freed are one block from then on, freed by the later call.
  if (of_one_stream) freed->position = std::max(freed->position, other->position);
  it->second.end = next->second.end;
  extents_.erase(next);
  return it;
}

void FreeMap::give(Span span, std::optional<StreamPoint> freed) {
  const auto it = extents_.emplace(span.begin, Extent{span.end, freed}).first;
  merge_with_next(it);
  if (it != extents_.begin()) merge_with_next(std::prev(it));
}

std::vector<StreamPoint> FreeMap::take(Span span) {
  std::vector<StreamPoint> tags;
  auto it = split(span.begin);
  split(span.end);
  while (it != extents_.end() && it->first < span.end) {
    if (it->second.freed) tags.push_back(*it->second.freed);
    it = extents_.erase(it);
  }
  std::sort(tags.begin(), tags.end());
  tags.erase(std::unique(tags.begin(), tags.end()), tags.end());
  return tags;
}

void FreeMap::settle(const Usable& seen) {
  for (auto it = extents_.begin(); it != extents_.end(); ++it) {
    const auto& freed = it->second.freed;
    if (!freed || !seen(*freed)) continue;
    it->second.freed.reset();
    if (it != extents_.begin()) {
      const auto before = std::prev(it);
      if (before->second.end == it->first && !before->second.freed) {
        merge_with_next(before);
        it = before;
      }
    }
    merge_with_next(it);
  }
}

std::vector<Span> FreeMap::runs(const Usable& usable) const {
  std::vector<Span> found;
  for (const auto& [begin, extent] : extents_) {
    if (extent.freed && !usable(*extent.freed)) continue;
    if (!found.empty() && found.back().end == begin) {
      found.back().end = extent.end;
    } else {
      found.push_back({begin, extent.end});
    }
  }
  return found;
}

std::vector<Span> FreeMap::clean_runs() const {
  return runs([](const StreamPoint&) { return false; });
}

bool FreeMap::all_free(Span span, const Usable& usable) const {
  auto it = extents_.upper_bound(span.begin);
  if (it == extents_.begin()) return false;
  --it;
  std::uint64_t at = span.begin;
  while (at < span.end) {
    if (it == extents_.end() || it->first > at || it->second.end <= at) return false;
    if (it->second.freed && !usable(*it->second.freed)) return false;
    at = it->second.end;
    ++it;
  }
  return true;
}

std::vector<Span> FreeMap::runs_of_one_stream() const {
  std::vector<Span> found;
  std::uint64_t stream = 0;
  for (const auto& [begin, extent] : extents_) {
    if (!extent.freed) continue;
    if (!found.empty() && found.back().end == begin && extent.freed->stream == stream) {
      found.back().end = extent.end;
    } else {
      found.push_back({begin, extent.end});
    }
    stream = extent.freed->stream;
  }
  return found;
}

bool FreeMap::is_of_one_stream(Span span) const {
  auto it = std::prev(extents_.upper_bound(span.begin));
  const auto stream = [](const Extent& e) { return e.freed ? e.freed->stream : 0; };
  const std::uint64_t first = stream(it->second);
  for (; it != extents_.end() && it->first < span.end; ++it)
    if (!it->second.freed || stream(it->second) != first) return false;
  return true;
}

}  // namespace granule::model
