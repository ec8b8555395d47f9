// SharedBuffer: the open descriptors of a buffer's chunks, to be imported elsewhere.
#pragma once

#include <cstdint>
#include <vector>

#include <granule/backend_api/backend.hpp>
#include <granule/backend_api/export.hpp>
#include <granule/backend_api/result.hpp>

namespace granule {

/// One descriptor per chunk, in address order, with its size: whole chunks, so that an importer
/// also sees memory that is committed ahead of the exporter's size. Owns the descriptors: they are
/// closed on every path. An open descriptor keeps the memory (driver contract, section 13).
/// Move-only; not thread-safe.
class GRANULE_EXPORT SharedBuffer {
 public:
  struct Chunk {
    Descriptor descriptor;
    std::uint64_t size = 0;  // bytes; an importer cannot learn it from the descriptor
    /// Number of the exporting chunk in this process; 0: another process made the memory, and an
    /// import is charged to the importer's limit.
    std::uint64_t origin = 0;
  };

  SharedBuffer() = default;
  SharedBuffer(Backend& backend, HandleType type) : backend_(&backend), type_(type) {}
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  /// As close(); a failure has nowhere to go and leaves the descriptor open.
  ~SharedBuffer();

  HandleType type() const { return type_; }
  const std::vector<Chunk>& chunks() const { return chunks_; }
  /// Makes room for `count` chunks, so that add cannot fail. May throw std::bad_alloc.
  void reserve(std::size_t count) { chunks_.reserve(count); }
  void add(const Chunk& chunk) { chunks_.push_back(chunk); }
  /// Closes all descriptors; the first error is returned, the rest are closed all the same.
  Status close();

 private:
  Backend* backend_ = nullptr;
  HandleType type_ = HandleType::kNone;
  std::vector<Chunk> chunks_;
};

}  // namespace granule
