// Writes one generated program: what it has made so far, and one function an operation.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "plan.hpp"

namespace granule::prop::gen {

/// A statement under construction.
class Line {
 public:
  explicit Line(Verb verb) { statement_.verb = verb; }
  Line& target(std::string name) {
    statement_.target = std::move(name);
    return *this;
  }
  Line& name(std::string text) { return operand(Name{std::move(text)}); }
  Line& size(Size value) { return operand(std::move(value)); }
  Line& number(std::uint64_t value) { return size(Size::bytes(value)); }
  Line& word(std::string text) { return operand(Word{std::move(text)}); }
  Line& operand(Operand value) {
    statement_.operands.push_back(std::move(value));
    return *this;
  }
  Line& flag(std::string key) {
    statement_.options.push_back({std::move(key), std::nullopt});
    return *this;
  }
  Line& option(std::string key, Operand value) {
    statement_.options.push_back({std::move(key), std::move(value)});
    return *this;
  }
  Line& on(const std::string& stream) {
    if (stream.empty()) return *this;
    return option("on", Name{stream});
  }
  bool has(std::string_view key) const { return statement_.has(key); }
  Statement take() { return std::move(statement_); }

 private:
  Statement statement_;
};

/// What the generator believes of the program's objects. Beliefs may be wrong (an operation may
/// have failed); a statement is then skipped or refused, which is as good a test.
struct StreamFact {
  std::string name;
  std::uint64_t device = 0;
  bool created = true;  // not a default stream
  bool held = false;
  bool capturing = false;
};

enum class ResourceKind : std::uint8_t { kVmm, kPool, kRecycler };

struct ResourceFact {
  std::string name;
  ResourceKind kind = ResourceKind::kVmm;
  bool shared = false;  // handles can be exported
  bool host = false;    // memory of the host, which no total bounds
};

struct BufferFact {
  std::string name;
  std::size_t resource = 0;
  std::uint64_t granules = 0;
  std::uint64_t capacity = 0;
  bool suspended = false;
  bool closed = false;
};

/// Capitalised kinds of names, for counting.
enum class NameKind : std::uint8_t {
  kBuffer,
  kStream,
  kResource,
  kEvent,
  kDecoy,
  kHole,
  kHolder,
  kExport
};

struct FaultRow;

class Writer {
 public:
  Writer(Chooser& chooser, const GenerateOptions& options);
  Program write();

 private:
  using Emit = bool (Writer::*)();

  // writer_setup.cpp
  void write_setup();
  void write_devices();
  void write_resource(ResourceKind kind, bool bad);
  void add_policy(Line& line, const ResourceFact& fact);
  void add_placement(Line& line, ResourceFact& fact);
  void add_bad_option(Line& line);
  bool make_stream();

  // writer_buffers.cpp
  bool allocate();
  bool grow();
  bool resize();
  bool shrink();
  bool close();
  bool drop();
  bool suspend();
  bool resume();
  bool holder();
  bool drop_holder();
  bool used();
  bool move();
  bool export_buffer();
  bool import_buffer();
  bool close_export();
  void add_call_options(Line& line, const BufferFact& buffer);

  // writer_world.cpp
  bool use();
  bool fill();
  bool copy();
  bool sync();
  bool hold();
  bool release();
  bool busy();
  bool pause();
  bool record();
  bool wait();
  bool decoy();
  bool remove();
  bool hole();
  bool probe();
  bool collect();
  bool trim();
  bool grant();
  bool destroy();
  bool begin_capture();
  bool end_capture();
  bool resource();
  bool drop_resource();
  bool pool_setting();
  bool threads();
  const FaultRow& pick_fault();
  bool fail();
  bool fail_contexts();
  bool fail_host();
  bool no_faults();
  bool steal();
  bool unsteal();
  bool hints();
  bool context();

  // writer.cpp
  static Emit emit_of(Op op);
  void write_one();
  void add(Line& line);
  void add(Line&& line) { add(line); }
  std::string fresh(NameKind kind);
  Size any_size();
  Size around(std::uint64_t granules);
  Size grown_size(const BufferFact& buffer);
  static std::uint64_t granules_of(const Size& size);
  Range range_of(const BufferFact& buffer);
  /// A buffer that fits, or null: mostly open, rarely a closed one.
  template <class Fits>
  BufferFact* pick_buffer(Fits&& fits);
  BufferFact* pick_vmm(bool awake = true);
  ResourceFact* pick_resource(ResourceKind kind);
  StreamFact* pick_stream();
  std::string stream_name(bool often_default = true);
  std::size_t index_of(const ResourceFact* resource) const;
  bool has(Feature f) const { return plan_.has(f); }

  Chooser& c_;
  const GenerateOptions& options_;
  Plan plan_;
  Program program_;
  std::string thread_;
  std::vector<StreamFact> streams_;
  std::vector<ResourceFact> resources_;
  std::vector<BufferFact> buffers_;
  std::vector<std::string> events_;
  std::vector<std::string> decoys_;
  std::vector<std::string> holes_;
  std::vector<std::string> holders_;
  std::vector<std::string> exports_;
  std::uint32_t made_[8] = {};
  bool faults_armed_ = false;
  bool stolen_ = false;
};

template <class Fits>
BufferFact* Writer::pick_buffer(Fits&& fits) {
  std::vector<BufferFact*> found;
  const bool closed_too = c_.chance(1, 40);
  for (BufferFact& buffer : buffers_)
    if (fits(buffer) && (closed_too || !buffer.closed)) found.push_back(&buffer);
  return found.empty() ? nullptr : found[c_.pick(found.size())];
}

}  // namespace granule::prop::gen
