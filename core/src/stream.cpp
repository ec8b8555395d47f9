// Binding of streams: context, device and never-reused id, asked once.
#include <granule/stream.hpp>

#include "context_scope.hpp"

namespace granule {
namespace detail {

Result<StreamId> stream_id(Backend& backend, StreamHandle handle) {
  StreamGetId get{handle, {}};
  const DriverStatus status = backend.run(get);
  // Drivers before 12.0 have no ids: then the handle value has to do.
  if (status == DriverStatus::kUnavailable) return StreamId{handle.value};
  if (status == DriverStatus::kStreamCaptureUnsupported) {
    Error error = driver_error(status, kind_of<StreamGetId>, handle.value);
    error.code = ErrorCode::kCapturing;  // bind streams before they capture
    return error;
  }
  if (status != DriverStatus::kSuccess) return driver_error(status, kind_of<StreamGetId>);
  return get.id;
}

}  // namespace detail

Result<Stream> Stream::bind(Backend& backend, StreamHandle handle, BindOptions options) {
  if (handle == kLegacyStream || handle == kPerThreadStream || !handle) {
    Error error = detail::make_error(
        ErrorCode::kInvalidArgument,
        "a default stream is bound by name: Stream::legacy or Stream::per_thread");
    error.object = handle.value;
    return error;
  }
  Stream stream;
  stream.handle_ = handle;
  stream.kind_ = StreamKind::kCreated;
  stream.never_captures_ = options.never_captures;

  StreamGetCtx get_context{handle, {}};
  DriverStatus status = backend.run(get_context);
  if (status != DriverStatus::kSuccess)
    return detail::driver_error(status, kind_of<StreamGetCtx>, handle.value);
  stream.context_ = get_context.context;

  Result<StreamId> id = detail::stream_id(backend, handle);
  if (!id) return id.error();
  stream.id_ = *id;

  const detail::Driver driver(backend, {});
  detail::ContextScope scope(driver, stream);
  if (!scope.status().ok()) return scope.status().error();
  CtxGetDevice get_device;
  status = backend.run(get_device);
  if (status != DriverStatus::kSuccess)
    return detail::driver_error(status, kind_of<CtxGetDevice>, handle.value);
  stream.device_ = get_device.device;
  return stream;
}

Stream Stream::legacy(DeviceId device) {
  Stream stream;
  stream.handle_ = kLegacyStream;
  stream.kind_ = StreamKind::kLegacy;
  stream.device_ = device;
  return stream;
}

Result<Stream> Stream::per_thread(Backend& backend, DeviceId device) {
  Stream stream;
  stream.handle_ = kPerThreadStream;
  stream.kind_ = StreamKind::kPerThread;
  stream.device_ = device;
  const detail::Driver driver(backend, {});
  detail::ContextScope scope(driver, stream);
  if (!scope.status().ok()) return scope.status().error();
  Result<StreamId> id = detail::stream_id(backend, kPerThreadStream);
  if (!id) return id.error();
  stream.id_ = *id;
  return stream;
}

}  // namespace granule
