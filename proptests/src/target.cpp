// What a target answers to operations that it does not have.
#include <granule/prop/target.hpp>

namespace granule::prop {
namespace {

Error unsupported() {
  Error error;
  error.code = ErrorCode::kUnsupported;
  error.detail = "this kind of resource has no such operation";
  return error;
}

}  // namespace

Result<TargetGrowth> TargetResource::grow(TargetBuffer&, std::uint64_t, const GrowOptions&) {
  return unsupported();
}
Result<ResizeResult> TargetResource::resize(TargetBuffer&, std::uint64_t, const GrowOptions&) {
  return unsupported();
}
Result<std::uint64_t> TargetResource::shrink(TargetBuffer&, std::uint64_t) { return unsupported(); }
Result<bool> TargetResource::could_extend(TargetBuffer&) { return unsupported(); }
Status TargetResource::used_on(TargetBuffer&, const Stream&) { return unsupported(); }
Result<std::unique_ptr<TargetHolder>> TargetResource::hold(TargetBuffer&) { return unsupported(); }
Status TargetResource::suspend(Buffers, bool) { return unsupported(); }
Status TargetResource::resume(Buffers) { return unsupported(); }
Result<std::unique_ptr<TargetBundle>> TargetResource::export_buffer(TargetBuffer&) {
  return unsupported();
}
Result<std::unique_ptr<TargetBuffer>> TargetResource::import_buffer(const Stream&, TargetBundle&) {
  return unsupported();
}
Status TargetResource::grant(DeviceId, Access) { return unsupported(); }
Status TargetResource::peer(DeviceId, Access) { return unsupported(); }
Status TargetResource::trim(std::uint64_t) { return unsupported(); }
Status TargetResource::collect() { return {}; }
Status TargetResource::forget(const Stream&) { return {}; }
Status TargetResource::set(std::string_view, std::uint64_t) { return unsupported(); }
Status TargetResource::reset_high() { return unsupported(); }

}  // namespace granule::prop
