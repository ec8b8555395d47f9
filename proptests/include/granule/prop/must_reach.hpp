// Lists of cells that a campaign must reach, as text. One a line: `OPERATION => OUTCOME`, and
// `when STATE...` behind it where the state matters:
//
//   close => capturing when capture
//   grow => moved when open=3 faults
//
// `fault CLASS` is a class of faults (refused, done, not_ready, property, sticky, surfacing, hint,
// stolen, host) of which one must have struck.
//
// States: open=0 to open=3 (buffers open, 3: or more), held (a stream), capture (one is under way),
// faults (armed), suspended (a buffer); no-held and so on are their opposites. `#` starts a
// comment.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <granule/prop/campaign.hpp>

namespace granule::prop {

struct WantedCell {
  std::string text;                          // as it was written
  std::optional<fault::FaultClass> strikes;  // then nothing else counts
  std::vector<Verb> verbs;
  std::uint32_t outcome = 0;
  std::uint64_t states = UINT64_MAX;  // bit n: state n will do
};

struct WantedCells {
  std::vector<WantedCell> cells;
  std::vector<std::string> errors;  // "line 3: `clsoe` is no operation"
};

WantedCells parse_wanted_cells(std::string_view text);

bool is_reached(const WantedCell& wanted, const CampaignResult& campaign);

/// Every operation and outcome that was reached, with a number of states, and every class of faults
/// that struck, a line each.
std::string reached_cells(const CampaignResult& campaign);

}  // namespace granule::prop
