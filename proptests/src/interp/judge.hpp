// Whether the reply of a statement, and what the driver saw meanwhile, may stand.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "reply.hpp"
#include "world.hpp"

namespace granule::prop {

class Judge {
 public:
  explicit Judge(World& world);

  /// The first thing that no correct run shows, or nothing. `took_over`: the oracle took over a
  /// choice of the driver during the statement. A `require` that cannot be met makes the report of
  /// the run kUnmet.
  std::optional<Failure> judge(const Statement& s, const Reply& reply, bool took_over);

 private:
  Failure failure(Failure::Kind kind, std::string signature, std::string message) const;
  std::optional<Failure> of_machine() const;
  std::optional<Failure> of_reply(const Statement& s, const Reply& reply, bool took_over) const;
  std::optional<Failure> of_findings(const Statement& s);
  std::optional<Failure> of_threads(const Statement& s, const Reply& reply) const;
  bool follows(const Statement& s, const Reply& reply, bool took_over) const;
  std::optional<Failure> unmet_require(const Reply& reply) const;
  bool is_misuse(const Finding& finding, const Statement& s) const;

  World& world_;
  std::vector<std::string> tolerated_;  // misuse that the program expects
  bool uses_library_ = false;
  std::size_t judged_ = 0;  // findings
};

}  // namespace granule::prop
