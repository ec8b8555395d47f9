// The faults that a sweep tries, from what a run without them did, and the programs that hold them.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <granule/backend_api/call.hpp>
#include <granule/backends/fault.hpp>
#include <granule/prop/program.hpp>
#include <granule/prop/sweep.hpp>

#include "watch.hpp"

namespace granule::prop::sweep {

/// A call or a host allocation of the library.
struct Point {
  std::size_t anchor = 0;     // the statement before which a `fail` has to stand
  std::size_t statement = 0;  // the one that makes it
  bool host = false;
  CallKind kind{};
  std::uint64_t nth = 1;          // counted from the anchor
  std::uint64_t at = 0;           // its place among all calls, or all allocations, of the run
  std::uint64_t host_before = 0;  // of a call: host allocations in front of it
  DriverStatus status = DriverStatus::kSuccess;  // what it answered
  SeenCall call;                                 // a call's own
  std::uint64_t free_before = 0;                 // memory of device 0 at the anchor
};

/// True if `second` comes behind `first` in a run that has both.
bool is_behind(const Point& first, const Point& second);

using fault::FaultClass;

/// One statement that makes something fail.
struct Fault {
  Point point;
  std::uint64_t times = 1;
  DriverStatus status = DriverStatus::kUnknown;
  FaultClass kind = FaultClass::kRefused;

  static constexpr std::uint64_t kAlways = UINT64_MAX;
  bool is_of_contexts() const {
    return kind == FaultClass::kSticky || kind == FaultClass::kSurfacing;
  }
  /// NOT_READY so few times that the library has to get over it unnoticed.
  bool is_passing() const;
};

/// The program without what it expects: `=>`, `expect`, `require` and what `check` compares. As
/// many statements as before; those that go become `mark`, a check becomes the wait that it is.
Program without_expectations(const Program& program);

/// The statement before which a fault for statement `index` has to stand: itself, or the start of
/// the blocks of threads that it is part of.
std::size_t anchor_of(const Program& program, std::size_t index);

/// All points of a watched run of `bare`. `fails` are the anchors of the `fail` statements that the
/// run had in addition, ascending.
std::vector<Point> points_of(const Program& bare, const Watch& watch,
                             const std::vector<std::size_t>& fails = {});

/// All single faults at those points.
std::vector<Fault> faults_of(const std::vector<Point>& points, const SweepBreadth& breadth);

/// The statement that the run of a program with those `fail` statements calls `index`, as the
/// program without them calls it; nothing for a `fail` itself.
std::optional<std::size_t> original_of(std::size_t index, const std::vector<std::size_t>& fails);

Statement statement_of(const Fault& fault);

/// Programs with one or two faults, made by changing one copy as little as needed.
class FaultedProgram {
 public:
  explicit FaultedProgram(const Program& bare) : bare_(bare) {}
  const Program& with(const Fault& fault);
  /// The second one stands at or behind the first one's anchor.
  const Program& with(const Fault& first, const Fault& second);
  /// Anchors of the faults of the program that was made last.
  const std::vector<std::size_t>& fails() const { return fails_; }

 private:
  void place(std::vector<std::size_t> fails);

  const Program& bare_;
  Program program_;
  std::vector<std::size_t> fails_;
};

}  // namespace granule::prop::sweep
