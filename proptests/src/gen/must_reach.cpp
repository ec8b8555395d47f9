// Reading lists of cells, and holding them against what a campaign reached.
#include <granule/prop/must_reach.hpp>

#include <algorithm>
#include <bit>
#include <sstream>

#include <granule/prop/cells.hpp>

namespace granule::prop {
namespace {

constexpr std::uint32_t kStates = 64;

/// The states in which the bits `mask` are `value`.
std::uint64_t states_with(std::uint32_t mask, std::uint32_t value) {
  std::uint64_t states = 0;
  for (std::uint32_t state = 0; state < kStates; ++state)
    if ((state & mask) == value) states |= std::uint64_t{1} << state;
  return states;
}

/// The states that the word names; 0 if it names none.
std::uint64_t states_named(std::string_view word) {
  struct Bit {
    std::string_view name;
    std::uint32_t mask;
  };
  constexpr Bit kBits[] = {{"held", 4}, {"capture", 8}, {"faults", 16}, {"suspended", 32}};
  for (const Bit& bit : kBits) {
    if (word == bit.name) return states_with(bit.mask, bit.mask);
    if (word == "no-" + std::string(bit.name)) return states_with(bit.mask, 0);
  }
  if (word.size() == 6 && word.substr(0, 5) == "open=" && word[5] >= '0' && word[5] <= '3')
    return states_with(3, static_cast<std::uint32_t>(word[5] - '0'));
  return 0;
}

std::string joined(const std::vector<std::string>& words, std::size_t from, std::size_t to) {
  std::string text;
  for (std::size_t i = from; i < to; ++i) text += (text.empty() ? "" : " ") + words[i];
  return text;
}

std::optional<fault::FaultClass> class_named(std::string_view name) {
  for (std::size_t i = 0; i < fault::kFaultClasses; ++i)
    if (name_of(static_cast<fault::FaultClass>(i)) == name)
      return static_cast<fault::FaultClass>(i);
  return std::nullopt;
}

/// Fills the cell from the words of a line; what is wrong with them, or nothing.
std::string read_cell(const std::vector<std::string>& words, WantedCell& cell) {
  const auto at = [&](std::string_view word) {
    return static_cast<std::size_t>(std::find(words.begin(), words.end(), word) - words.begin());
  };
  if (words[0] == "fault") {
    if (words.size() == 2) cell.strikes = class_named(words[1]);
    return cell.strikes ? "" : "expected `fault CLASS`";
  }
  const std::size_t arrow = at("=>");
  const std::size_t when = at("when");
  if (arrow == words.size() || arrow >= when) return "expected `OPERATION => OUTCOME`";
  cell.verbs = verbs_spelled(joined(words, 0, arrow));
  if (cell.verbs.empty()) return "`" + joined(words, 0, arrow) + "` is no operation";
  const std::string outcome = joined(words, arrow + 1, when);
  const auto* const found = std::find(kOutcomeNames.begin(), kOutcomeNames.end(), outcome);
  if (found == kOutcomeNames.end()) return "`" + outcome + "` is no outcome";
  cell.outcome = static_cast<std::uint32_t>(found - kOutcomeNames.begin());
  for (std::size_t i = when + 1; i < words.size(); ++i) {
    const std::uint64_t states = states_named(words[i]);
    if (states == 0) return "`" + words[i] + "` is no state";
    cell.states &= states;
  }
  if (cell.states == 0) return "there is no such state";
  return {};
}

}  // namespace

WantedCells parse_wanted_cells(std::string_view text) {
  WantedCells wanted;
  std::istringstream lines{std::string(text)};
  std::string line;
  for (std::size_t number = 1; std::getline(lines, line); ++number) {
    std::istringstream in(line.substr(0, line.find('#')));
    std::vector<std::string> words;
    for (std::string word; in >> word;) words.push_back(word);
    if (words.empty()) continue;
    WantedCell cell;
    cell.text = joined(words, 0, words.size());
    const std::string wrong = read_cell(words, cell);
    if (!wrong.empty()) wanted.errors.push_back("line " + std::to_string(number) + ": " + wrong);
    wanted.cells.push_back(std::move(cell));
  }
  return wanted;
}

bool is_reached(const WantedCell& wanted, const CampaignResult& campaign) {
  if (wanted.strikes)
    return campaign.fired_by_class[static_cast<std::size_t>(*wanted.strikes)] != 0;
  return std::any_of(wanted.verbs.begin(), wanted.verbs.end(), [&](Verb verb) {
    return (campaign.cells.states(verb, wanted.outcome) & wanted.states) != 0;
  });
}

std::string reached_cells(const CampaignResult& campaign) {
  std::string text;
  for (std::size_t verb = 0; verb < kVerbCount; ++verb)
    for (std::uint32_t outcome = 0; outcome < kOutcomeNames.size(); ++outcome) {
      const std::uint64_t states = campaign.cells.states(static_cast<Verb>(verb), outcome);
      if (states == 0) continue;
      text += std::string(spelling_of(static_cast<Verb>(verb))) + " => " +
              std::string(kOutcomeNames[outcome]) + "  # " + std::to_string(std::popcount(states)) +
              " states\n";
    }
  for (std::size_t i = 0; i < fault::kFaultClasses; ++i)
    if (campaign.fired_by_class[i] != 0)
      text += "fault " + std::string(name_of(static_cast<fault::FaultClass>(i))) + "  # " +
              std::to_string(campaign.fired_by_class[i]) + " times\n";
  return text;
}

}  // namespace granule::prop
