// Reading GRANULE_SIM.
#include "options.hpp"

#include <charconv>
#include <utility>

#include <granule/backend_api/call.hpp>
#include <granule/backend_api/checked.hpp>

namespace granule::libcuda {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r'))
    text.remove_suffix(1);
  return text;
}

/// Cuts the first word off.
std::string_view next_word(std::string_view& text) {
  text = trimmed(text);
  const std::size_t end = text.find(' ');
  const std::string_view word = text.substr(0, end);
  text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  return word;
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || read.ec != std::errc{} || read.ptr != text.data() + text.size())
    return std::nullopt;
  return value;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

bool set_number(std::uint64_t& to, std::string_view value) {
  const auto number = parse_number(value);
  if (number) to = *number;
  return number.has_value();
}

bool set_driver(Options& options, std::string_view value) {
  if (value == "exact") options.driver = Strictness::kExact;
  if (value == "portable") options.driver = Strictness::kPortable;
  if (value == "adversarial") options.driver = Strictness::kAdversarial;
  return value == "exact" || value == "portable" || value == "adversarial";
}

bool add_fault(Options& options, std::string_view value) {
  const auto rule = parse_fault(value);
  if (!rule) return false;
  options.fail.push_back(*rule);
  options.fail_texts.emplace_back(value);
  return true;
}

bool set_devices(Options& options, std::string_view value) {
  const auto number = parse_number(value);
  if (!number || *number < 1 || *number > 15) return false;
  options.devices = static_cast<int>(*number);
  return true;
}

bool set_option(Options& options, std::string_view key, std::string_view value) {
  if (key == "memory") {
    const auto size = parse_size(value);
    options.memory = size.value_or(0);
    return size.has_value();
  }
  if (key == "profile") {
    options.profile = value;
    return value == "h200" || value == "a100" || value == "laptop";
  }
  if (key == "driver") return set_driver(options, value);
  if (key == "devices") return set_devices(options, value);
  if (key == "fail") return add_fault(options, value);
  if (key == "points") {
    options.points = true;
    options.all_points = value == "all";
    return true;
  }
  if (key == "seed") return set_number(options.seed, value);
  if (key == "hang_ms") return set_number(options.hang_ms, value);
  for (const auto& [name, text] :
       {std::pair<std::string_view, std::string*>{"report", &options.report},
        {"record", &options.record},
        {"real", &options.real},
        {"suppress", &options.suppress}}) {
    if (key != name) continue;
    *text = value;
    options.watch = !options.real.empty();
    return true;
  }
  if (key == "python") {
    options.python = value != "0";
    return true;
  }
  return false;
}

}  // namespace

std::optional<std::uint64_t> parse_size(std::string_view text) {
  static constexpr std::pair<std::string_view, int> kUnits[] = {
      {"TiB", 40}, {"GiB", 30}, {"MiB", 20}, {"KiB", 10}, {"B", 0}};
  int shift = 0;
  for (const auto& [unit, bits] : kUnits) {
    if (text.size() <= unit.size() || text.substr(text.size() - unit.size()) != unit) continue;
    shift = bits;
    text.remove_suffix(unit.size());
    break;
  }
  const auto number = parse_number(trimmed(text));
  if (!number || (*number << shift) >> shift != *number) return std::nullopt;
  return *number << shift;
}

std::optional<fault::FaultRule> parse_fault(std::string_view text) {
  fault::FaultRule rule;
  const std::string_view name = next_word(text);
  if (name != "any") {
    rule.call = call_named(name);
    if (!rule.call) return std::nullopt;
  }
  bool with = false;
  while (!trimmed(text).empty()) {
    const std::string_view word = next_word(text);
    if (word == "after") {
      rule.timing = fault::Timing::kAfter;
    } else if (word == "with") {
      const auto status = status_named(next_word(text));
      if (!status || *status == DriverStatus::kSuccess) return std::nullopt;
      rule.status = *status;
      with = true;
    } else if (word == "times=all") {
      rule.times = fault::FaultRule::kAlways;
    } else if (starts_with(word, "nth=")) {
      if (!set_number(rule.nth, word.substr(4)) || rule.nth == 0) return std::nullopt;
    } else if (starts_with(word, "times=")) {
      if (!set_number(rule.times, word.substr(6)) || rule.times == 0) return std::nullopt;
    } else {
      return std::nullopt;
    }
  }
  if (!with) return std::nullopt;
  return rule;
}

Options parse_options(std::string_view text) {
  Options options;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = trimmed(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty()) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos ||
        !set_option(options, line.substr(0, equals), line.substr(equals + 1)))
      options.errors.emplace_back(line);
  }
  return options;
}

}  // namespace granule::libcuda
