// Generated operations on buffers.
#include <algorithm>

#include "writer.hpp"

namespace granule::prop::gen {
namespace {
bool is_open(const BufferFact& buffer) { return !buffer.closed; }
}  // namespace

bool Writer::allocate() {
  const auto open =
      static_cast<std::uint64_t>(std::count_if(buffers_.begin(), buffers_.end(), is_open));
  if (resources_.empty()) return false;
  if (open >= plan_.most_buffers && !c_.chance(1, 6)) return false;
  ResourceFact& resource = resources_[c_.pick(resources_.size())];
  if (resource.name.empty()) return false;
  BufferFact buffer;
  buffer.resource = index_of(&resource);
  const bool small = resource.kind != ResourceKind::kVmm && c_.chance(1, 2);
  const Size size =
      small ? Size::bytes(c_.one_of<std::uint64_t>({4096, 512, 65536, 1000000})) : any_size();
  buffer.granules = granules_of(size);
  buffer.name = fresh(NameKind::kBuffer);
  Line line = Line(Verb::kAllocate).target(buffer.name).name(resource.name).size(size);
  if (resource.kind == ResourceKind::kVmm) {
    if (has(Feature::kCapacity) && c_.chance(1, 2)) {
      buffer.capacity = buffer.granules + c_.between(1, 8);
      const Size capacity = c_.chance(1, 12) ? any_size() : Size::granules(buffer.capacity);
      line.option("capacity", capacity);
    }
    if (!holes_.empty() && c_.chance(1, 2)) line.option("at", Name{holes_[c_.pick(holes_.size())]});
    if (has(Feature::kZero) && c_.chance(1, 2)) line.flag("zero");
  }
  line.on(stream_name());
  add(line);
  buffers_.push_back(std::move(buffer));
  return true;
}

void Writer::add_call_options(Line& line, const BufferFact& buffer) {
  if (has(Feature::kCallOptions) && c_.chance(1, 3)) {
    switch (c_.pick(4)) {
      case 0:
        line.option("capacity", Size::granules(buffer.granules + 8));
        break;
      case 1:
        line.option("self_access", Word{c_.chance(1, 2) ? "none" : "rw"});
        break;
      case 2:
        line.option("rdma", Word{"required"});
        break;
      default:
        if (has(Feature::kSecondDevice)) line.option("peers", NumberList{{1}});
    }
  }
  if (!has(Feature::kBadOptions) || !c_.chance(1, 4)) return;
  Place place;
  place.id = 1;
  switch (c_.pick(4)) {
    case 0:
      line.option("handle", Word{"win32_kmt"});
      break;
    case 1:
      line.option("location", place);
      break;
    case 2:
      if (!line.has("peers")) line.option("peers", NumberList{{9}});
      break;
    default:
      break;
  }
}

bool Writer::grow() {
  BufferFact* input = pick_vmm();
  if (!input) return false;
  if (buffers_.size() > 2 * plan_.most_buffers + 8) return false;
  BufferFact result = *input;
  result.name = fresh(NameKind::kBuffer);
  const Size size = grown_size(*input);
  Line line = Line(Verb::kGrow).target(result.name).name(input->name).size(size);
  add_call_options(line, *input);
  add(line);
  result.closed = false;
  result.granules = std::max(result.granules, granules_of(size));
  buffers_.push_back(std::move(result));
  return true;
}

bool Writer::resize() {
  BufferFact* buffer = pick_vmm();
  if (!buffer) return false;
  const bool smaller = buffer->granules > 1 && c_.chance(1, 3);
  const Size size = smaller ? around(c_.pick(buffer->granules)) : grown_size(*buffer);
  Line line = Line(Verb::kResize).name(buffer->name).size(size);
  add_call_options(line, *buffer);
  add(line);
  const std::uint64_t granules = granules_of(size);
  if (granules <= plan_.memory) buffer->granules = granules;
  return true;
}

bool Writer::shrink() {
  BufferFact* buffer = pick_vmm();
  if (!buffer || buffer->granules == 0) return false;
  const Size size = around(c_.pick(buffer->granules));
  add(Line(Verb::kShrink).name(buffer->name).size(size));
  buffer->granules = std::min(buffer->granules, granules_of(size));
  return true;
}

bool Writer::close() {
  BufferFact* buffer = pick_buffer([](const BufferFact&) { return true; });
  if (!buffer) return false;
  Line line = Line(Verb::kClose).name(buffer->name);
  if (c_.chance(1, 3)) line.on(stream_name(false));
  add(line);
  buffer->closed = true;
  buffer->suspended = false;
  return true;
}

bool Writer::drop() {
  BufferFact* buffer = pick_buffer([](const BufferFact&) { return true; });
  if (!buffer) return false;
  add(Line(Verb::kDrop).name(buffer->name));
  buffers_.erase(buffers_.begin() + (buffer - buffers_.data()));
  return true;
}

bool Writer::suspend() {
  BufferFact* first = pick_vmm(false);
  if (!first) return false;
  Line line = Line(Verb::kSuspend).name(first->name);
  if (c_.chance(1, 4)) {
    BufferFact* second = pick_vmm(false);
    if (second && second != first && second->resource == first->resource) {
      line.name(second->name);
      second->suspended = true;
    }
  }
  // A backup is copied byte by byte, which a campaign of small machines is quick without.
  constexpr std::uint64_t kLargestBackup = 3;
  if (first->granules <= kLargestBackup && c_.chance(1, 3)) line.flag("backup");
  add(line);
  first->suspended = true;
  return true;
}

bool Writer::resume() {
  BufferFact* buffer = pick_buffer([](const BufferFact& b) { return b.suspended; });
  if (!buffer) return false;
  Line line = Line(Verb::kResume).name(buffer->name);
  buffer->suspended = false;
  if (c_.chance(1, 4)) {
    BufferFact* second = pick_buffer(
        [&](const BufferFact& b) { return b.suspended && b.resource == buffer->resource; });
    if (second) {
      line.name(second->name);
      second->suspended = false;
    }
  }
  add(line);
  return true;
}

bool Writer::holder() {
  BufferFact* buffer = pick_vmm();
  if (!buffer) return false;
  const std::string name = fresh(NameKind::kHolder);
  add(Line(Verb::kHolder).name(name).name(buffer->name));
  holders_.push_back(name);
  return true;
}

bool Writer::drop_holder() {
  if (holders_.empty()) return false;
  const std::size_t index = c_.pick(holders_.size());
  add(Line(Verb::kDrop).name(holders_[index]));
  holders_.erase(holders_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

bool Writer::used() {
  BufferFact* buffer = pick_vmm();
  StreamFact* stream = pick_stream();
  if (!buffer || !stream) return false;
  add(Line(Verb::kUsed).name(buffer->name).on(stream->name));
  return true;
}

bool Writer::move() {
  BufferFact* from = pick_buffer([](const BufferFact&) { return true; });
  if (!from) return false;
  BufferFact moved = *from;
  BufferFact* to = c_.chance(1, 3) ? pick_buffer([](const BufferFact&) { return true; }) : nullptr;
  if (to == from) to = nullptr;
  moved.name = to ? to->name : fresh(NameKind::kBuffer);
  add(Line(Verb::kMove).name(from->name).name(moved.name));
  if (to) {
    *to = std::move(moved);
    buffers_.erase(buffers_.begin() + (from - buffers_.data()));
  } else {
    *from = std::move(moved);
  }
  return true;
}

bool Writer::export_buffer() {
  BufferFact* buffer = pick_buffer(
      [&](const BufferFact& b) { return resources_[b.resource].shared && !b.suspended; });
  if (!buffer) return false;
  const std::string name = fresh(NameKind::kExport);
  add(Line(Verb::kExport).target(name).name(buffer->name));
  exports_.push_back(name);
  return true;
}

bool Writer::import_buffer() {
  ResourceFact* resource = pick_resource(ResourceKind::kVmm);
  if (exports_.empty() || !resource) return false;
  BufferFact buffer;
  buffer.name = fresh(NameKind::kBuffer);
  buffer.resource = index_of(resource);
  buffer.granules = 1;
  add(Line(Verb::kImport)
          .target(buffer.name)
          .name(resource->name)
          .name(exports_[c_.pick(exports_.size())]));
  buffers_.push_back(std::move(buffer));
  return true;
}

bool Writer::close_export() {
  if (exports_.empty()) return false;
  const std::size_t index = c_.pick(exports_.size());
  add(Line(Verb::kClose).name(exports_[index]));
  exports_.erase(exports_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

}  // namespace granule::prop::gen
