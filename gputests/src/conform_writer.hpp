// What a conformance program has made so far, as its writer believes, and the lines it writes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <granule/prop/rng.hpp>

#include "conform.hpp"

namespace granule::gpu {

/// Writes one program, line by line.
class ConformWriter {
 public:
  ConformWriter(prop::Rng rng, const ConformOptions& options);
  std::string write();

 private:
  struct Mapped {
    std::uint64_t at = 0;  // granules from the reservation's start
    std::uint64_t size = 0;
    std::size_t memory = 0;
    bool usable = false;  // rw for device 0, as far as is known
  };
  struct Place {
    std::string name;
    std::uint64_t size = 0;  // granules
    std::vector<Mapped> mapped;
  };
  struct Memory {
    std::vector<std::string> names;  // one a reference
    std::uint64_t size = 0;          // granules
    std::uint64_t mappings = 0;
    bool exportable = false;
    bool on_host = false;
    bool gone = false;  // a dead value, for second releases
    std::string old_name;
  };
  struct Block {
    std::string name;
    std::string stream;
    std::uint64_t size = 0;  // bytes
    std::string pool;
  };
  struct Plain {
    std::string name;
    std::uint64_t size = 0;
  };

  // conform_vmm.cpp
  void reserve();
  void free_place();
  void create();
  void release();
  void retain();
  void map();
  void unmap();
  void set_access();
  void get_access();
  void share();
  void query_handle();
  // conform_rest.cpp
  void contents();
  void query_pointer();
  void plain();
  void pool();
  void settle_frees();
  void destroy_pool(const std::string& q);
  void stream();
  void held();
  void capture();
  void information();

  void line(const std::string& text) {
    text_ += text + "\n";
    ++lines_;
  }
  /// Before memory goes or changes its access: queued work runs first.
  void settle();
  std::string fresh(char kind) { return std::string(1, kind) + std::to_string(next_++); }
  std::uint64_t pick(std::uint64_t bound) { return rng_.below(bound); }
  bool chance(std::uint64_t of) { return rng_.below(of) == 0; }
  template <class T>
  T& any(std::vector<T>& list) {
    return list[pick(list.size())];
  }
  std::string any_stream();
  std::string granules(std::uint64_t count) const { return std::to_string(count) + "g"; }
  std::string address(const Place& place, std::uint64_t at) const;
  /// An address of some kind: in a place, of plain memory, a block, or wild.
  std::string any_address();
  void drop_reference(Memory& memory, std::size_t index);
  std::size_t live_memory();

  prop::Rng rng_;
  ConformOptions options_;
  std::string text_;
  std::uint64_t lines_ = 0;
  std::uint64_t next_ = 0;
  std::vector<Place> places_;
  std::vector<Memory> memories_;
  std::vector<std::string> descriptors_;
  std::vector<std::size_t> described_;  // memory of each
  std::vector<std::string> streams_;
  std::vector<std::string> events_;
  std::vector<Plain> plains_;
  std::vector<std::string> pinned_;
  std::vector<std::string> pools_;
  std::vector<std::string> bounded_;  // pools with a maximal size
  bool frees_unsettled_ = false;      // a free on a stream may not have run
  std::vector<Block> blocks_;
  bool unsettled_ = false;
  std::string unsettled_on_;  // of the last write: " on s", or empty
};

}  // namespace granule::gpu
