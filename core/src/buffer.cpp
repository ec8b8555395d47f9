// Buffer: the public face of a record.
#include <granule/buffer.hpp>

#include "resource_core.hpp"

namespace granule {
namespace {

Error closed_error() { return detail::make_error(ErrorCode::kClosed, "the buffer is closed"); }

}  // namespace

std::string_view name_of(Placement placement) noexcept {
  switch (placement) {
    case Placement::kAlias:
      return "alias";
    case Placement::kKept:
      return "kept";
    case Placement::kMoved:
      return "moved";
  }
  return "";
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  Buffer gone(std::move(*this));
  core_ = std::exchange(other.core_, nullptr);
  record_ = std::exchange(other.record_, nullptr);
  return *this;
}

Buffer::~Buffer() {
  if (record_) core_->drop(record_, false).ignore();  // parks instead of failing
  if (core_) core_->unref();
}

DevicePtr Buffer::ptr() const { return DevicePtr{record_ ? record_->base : 0}; }
std::uint64_t Buffer::size() const { return record_ ? record_->size : 0; }
std::uint64_t Buffer::capacity() const { return record_ ? core_->capacity(*record_) : 0; }
bool Buffer::is_suspended() const { return record_ && record_->suspended; }
const Stream& Buffer::stream() const { return record_->primary.stream; }

Result<GrowResult> Buffer::grow(std::uint64_t size, const GrowOptions& options) const {
  if (!record_) return closed_error();
  return core_->grow(*record_, size, options);
}
Result<bool> Buffer::could_extend() const {
  if (!record_) return closed_error();
  return core_->could_extend(*record_);
}
Result<ResizeResult> Buffer::resize(std::uint64_t size, const GrowOptions& options) {
  if (!record_) return closed_error();
  return core_->resize(*record_, size, options, true);
}
Result<ResizeResult> Buffer::try_extend(std::uint64_t size, const GrowOptions& options) {
  if (!record_) return closed_error();
  return core_->resize(*record_, size, options, false);
}
Result<std::uint64_t> Buffer::shrink(std::uint64_t size) {
  if (!record_) return closed_error();
  return core_->shrink(*record_, size);
}

namespace {

// A closed buffer holds on to nothing, its resource included.
void let_go(detail::ResourceCore*& core, const detail::Record* record) {
  if (!record) std::exchange(core, nullptr)->unref();
}

}  // namespace

Status Buffer::close() {
  if (!record_) return {};
  Status closed = core_->close(record_, nullptr);
  let_go(core_, record_);
  return closed;
}
Status Buffer::close(const Stream& stream) {
  if (!record_) return {};
  Status closed = core_->close(record_, &stream);
  let_go(core_, record_);
  return closed;
}
Status Buffer::drop() {
  if (!record_) return {};
  Status dropped = core_->drop(record_, true);
  let_go(core_, record_);
  return dropped;
}
Status Buffer::used_on(const Stream& stream) {
  if (!record_) return closed_error();
  if (record_->suspended) return detail::make_error(ErrorCode::kSuspended, "resume it first");
  return core_->used_on(*record_, stream);
}
Result<RangeHolder> Buffer::hold() const {
  if (!record_) return closed_error();
  return core_->hold(*record_);
}

Result<std::vector<ChunkView>> Buffer::chunks() const {
  if (!record_) return closed_error();
  if (record_->suspended) return detail::make_error(ErrorCode::kSuspended, "resume it first");
  return core_->chunks(*record_);
}

}  // namespace granule
