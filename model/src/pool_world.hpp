// The bridge from the pools' bookkeeping to the rest of the state.
#pragma once

#include "pool.hpp"
#include "state.hpp"

namespace granule::model {

/// Answers the questions of PoolState from a State; also told which addresses pools occupy.
class StateWorld final : public PoolWorld {
 public:
  explicit StateWorld(State& state) : state_(state) {}
  bool has_run(const StreamPoint& point) const override;
  bool follows(std::uint64_t stream, const StreamPoint& point) const override;
  bool take(const Location& place, std::uint64_t bytes) override;
  void give(const Location& place, std::uint64_t bytes) override;
  std::uint64_t window_size() const override;
  std::uint64_t first_window() const override;
  bool claim(const AddressRange& window) override;
  void unclaim(const AddressRange& window) override;

 private:
  State& state_;
};

}  // namespace granule::model
