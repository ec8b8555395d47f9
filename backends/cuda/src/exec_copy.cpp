// Copies: from patterns, to summaries, and between device ranges.
#include <algorithm>
#include <cstring>
#include <memory>
#include <new>

#include <granule/backend_api/checked.hpp>

#include "impl.hpp"

namespace granule::cuda {
namespace {

constexpr std::uint64_t kChunk = std::uint64_t{256} << 20;
/// Beyond any range that can be mapped: the driver refuses it, and no buffer would hold it.
constexpr std::uint64_t kAbsurd = std::uint64_t{1} << 46;

using HostBuffer = std::unique_ptr<std::byte[]>;

HostBuffer host_buffer(std::uint64_t size) {
  return HostBuffer(new std::byte[static_cast<std::size_t>(std::max<std::uint64_t>(size, 1))]);
}

bool absurd(std::uint64_t base, std::uint64_t size) {
  return size > kAbsurd || !checked_add(base, size);
}

}  // namespace

DriverStatus CudaBackend::Impl::call(MemcpyHtoD& c) {
  if (c.src.data != nullptr)
    return invoke(driver->cuMemcpyHtoD, to_abi(c.dst), c.src.data, std::size_t{c.size});
  if (absurd(c.dst.value, c.size)) return DriverStatus::kInvalidValue;
  // The driver checks the whole range before it writes; beyond a chunk only that chunk's.
  const std::uint64_t chunk = std::min(c.size, kChunk);
  const HostBuffer bytes = host_buffer(chunk);
  std::memset(bytes.get(), c.src.pattern, static_cast<std::size_t>(chunk));
  std::uint64_t done = 0;
  do {
    const std::uint64_t part = std::min(chunk, c.size - done);
    const DriverStatus status = invoke(driver->cuMemcpyHtoD, abi::DevicePtr{c.dst.value + done},
                                       static_cast<const void*>(bytes.get()), std::size_t{part});
    if (status != DriverStatus::kSuccess) return status;
    done += part;
  } while (done < c.size);
  return DriverStatus::kSuccess;
}

DriverStatus CudaBackend::Impl::call(MemcpyHtoDAsync& c) {
  if (c.src.data != nullptr) {
    return invoke(driver->cuMemcpyHtoDAsync, to_abi(c.dst), c.src.data, std::size_t{c.size},
                  to_abi(c.stream));
  }
  if (absurd(c.dst.value, c.size)) return DriverStatus::kInvalidValue;
  std::shared_ptr<ContextState> state;
  DriverStatus status = contexts.state_of(to_abi(c.stream), &state);
  if (status != DriverStatus::kSuccess) return status;
  const std::byte* bytes = nullptr;
  status = state->pattern(c.src.pattern, std::min(c.size, kChunk), &bytes);
  std::uint64_t done = 0;
  if (status != DriverStatus::kSuccess) return status;
  do {
    const std::uint64_t part = std::min(kChunk, c.size - done);
    status = invoke(driver->cuMemcpyHtoDAsync, abi::DevicePtr{c.dst.value + done},
                    static_cast<const void*>(bytes), std::size_t{part}, to_abi(c.stream));
    if (status != DriverStatus::kSuccess) return status;
    done += part;
  } while (done < c.size);
  return DriverStatus::kSuccess;
}

DriverStatus CudaBackend::Impl::copy_piece(const ReadPiece& piece, std::byte* to,
                                           const StreamHandle* stream) {
  if (piece.rows == 1) {
    const abi::DevicePtr source = piece.source;
    void* target = to;
    return stream == nullptr
               ? invoke(driver->cuMemcpyDtoH, target, source, std::size_t{piece.width})
               : invoke(driver->cuMemcpyDtoHAsync, target, source, std::size_t{piece.width},
                        to_abi(*stream));
  }
  abi::Memcpy2D rows;
  rows.src_type = abi::kMemoryTypeDevice;
  rows.src_device = piece.source;
  rows.src_pitch = piece.pitch;
  rows.dst_type = abi::kMemoryTypeHost;
  rows.dst_host = to;
  rows.dst_pitch = piece.width;
  rows.width = piece.width;
  rows.height = piece.rows;
  const abi::Memcpy2D* given = &rows;
  return stream == nullptr ? invoke(driver->cuMemcpy2D, given)
                           : invoke(driver->cuMemcpy2DAsync, given, to_abi(*stream));
}

DriverStatus CudaBackend::Impl::summarise(MemcpyDtoH& c) {
  if (absurd(c.src.value, c.size)) return DriverStatus::kInvalidValue;
  ByteFold fold;
  const ReadPlan plan = plan_read(c.src.value, c.size, options.full_read_limit);
  // One huge piece (a full read was asked for) goes in chunks; everything else at once.
  const std::uint64_t room = plan.count == 1 ? std::min(plan.bytes, kChunk) : plan.bytes;
  const HostBuffer bytes = host_buffer(room);
  if (plan.count == 1) {
    std::uint64_t done = 0;
    do {
      const std::uint64_t part = std::min(room, c.size - done);
      const DriverStatus status =
          copy_piece({c.src.value + done, part, part, 1}, bytes.get(), nullptr);
      if (status != DriverStatus::kSuccess) return status;
      fold.add(bytes.get(), part);
      done += part;
    } while (done < c.size);
  } else {
    std::byte* to = bytes.get();
    for (std::uint32_t i = 0; i < plan.count; ++i) {
      const DriverStatus status = copy_piece(plan.pieces[i], to, nullptr);
      if (status != DriverStatus::kSuccess) return status;
      to += plan.pieces[i].bytes();
    }
    fold.add(bytes.get(), plan.bytes);
  }
  c.found = fold.summary();
  return DriverStatus::kSuccess;
}

DriverStatus CudaBackend::Impl::call(MemcpyDtoH& c) {
  if (c.dst == nullptr) return summarise(c);
  const DriverStatus status =
      invoke(driver->cuMemcpyDtoH, c.dst, to_abi(c.src), std::size_t{c.size});
  if (status == DriverStatus::kSuccess) {
    ByteFold fold;
    fold.add(static_cast<const std::byte*>(c.dst), c.size);
    c.found = fold.summary();
  }
  return status;
}

DriverStatus CudaBackend::Impl::summarise_queued(MemcpyDtoHAsync& c) {
  if (absurd(c.src.value, c.size)) return DriverStatus::kInvalidValue;
  std::shared_ptr<ContextState> state;
  DriverStatus status = contexts.state_of(to_abi(c.stream), &state);
  if (status != DriverStatus::kSuccess) return status;
  const ReadPlan plan = plan_read(c.src.value, c.size, options.full_read_limit);
  Arrival arrival;
  status = landings.prepare(state, 0, std::max<std::uint64_t>(plan.bytes, 1), &arrival);
  if (status != DriverStatus::kSuccess) return status;
  arrival.size = plan.bytes;
  std::byte* to = arrival.buffer;
  for (std::uint32_t i = 0; i < plan.count; ++i) {
    status = copy_piece(plan.pieces[i], to, &c.stream);
    if (status != DriverStatus::kSuccess) {
      // With a piece already queued its buffer is still written to: it is not used again.
      if (i == 0) Landings::cancel(arrival);
      return status;
    }
    to += plan.pieces[i].bytes();
  }
  status = mark_arrival(arrival, c.stream);
  if (status == DriverStatus::kSuccess) landings.expect(c.landing, arrival);
  return status;
}

DriverStatus CudaBackend::Impl::call(MemcpyDtoHAsync& c) {
  if (c.dst == nullptr) return summarise_queued(c);
  return invoke(driver->cuMemcpyDtoHAsync, c.dst, to_abi(c.src), std::size_t{c.size},
                to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(MemcpyDtoD& c) {
  return invoke(driver->cuMemcpyDtoD, to_abi(c.dst), to_abi(c.src), std::size_t{c.size});
}

DriverStatus CudaBackend::Impl::call(MemcpyDtoDAsync& c) {
  return invoke(driver->cuMemcpyDtoDAsync, to_abi(c.dst), to_abi(c.src), std::size_t{c.size},
                to_abi(c.stream));
}

DriverStatus CudaBackend::Impl::call(Memcpy& c) {
  if (options.guard && c.size != 0) {
    // An address that the driver does not know is taken for a host pointer and dereferenced.
    for (const DevicePtr ptr : {c.dst, c.src}) {
      PointerGetAttribute type;
      type.ptr = ptr;
      type.attribute = PointerAttribute::kMemoryType;
      if (call(type) == DriverStatus::kInvalidValue) return DriverStatus::kUndefined;
    }
  }
  return invoke(driver->cuMemcpy, to_abi(c.dst), to_abi(c.src), std::size_t{c.size});
}

}  // namespace granule::cuda
