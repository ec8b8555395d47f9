// Lines of calls: written and read field by field from the descriptions of the call structs.
#include <granule/backends/trace.hpp>

#include <bitset>

#include "values.hpp"

namespace granule::trace {
namespace {

constexpr std::string_view kArrow = "=>";
constexpr std::string_view kNumbered = "status:";

void put_fields(std::string& out, const Call& call, bool outputs) {
  std::visit(
      [&](const auto& c) {
        for_each_field(c, [&](const auto& field, const auto& member) {
          if (is_output(field.role) != outputs) return;
          out += ' ';
          out += field.name;
          out += '=';
          put(out, member);
        });
      },
      call);
}

void put_status(std::string& out, DriverStatus status) {
  const std::string_view name = granule::name_of(status);
  if (status_named(name) == status) {
    out += name;
  } else {
    out += kNumbered;
    out += std::to_string(static_cast<std::int32_t>(status));
  }
}

bool get_status(std::string_view text, DriverStatus& status) {
  if (const auto named = status_named(text)) {
    status = *named;
    return true;
  }
  if (text.substr(0, kNumbered.size()) != kNumbered) return false;
  std::int32_t number = 0;
  if (!get_number(text.substr(kNumbered.size()), number)) return false;
  status = static_cast<DriverStatus>(number);
  return true;
}

/// Reads "name=value" into the member of that name. False if there is none, if it was read
/// before, or if the value is malformed.
bool get_field(Call& call, std::string_view token, bool outputs, std::bitset<64>& read) {
  const std::string_view name = cut(token, '=');
  return std::visit(
      [&](auto& c) {
        bool found = false;
        std::size_t index = 0;
        for_each_field(c, [&](const auto& field, auto& member) {
          const std::size_t mine = index++;
          if (field.name != name || is_output(field.role) != outputs || read[mine]) return;
          read.set(mine);
          found = get(token, member);
        });
        return found;
      },
      call);
}

}  // namespace

std::string to_text(const Call& call) {
  std::string out(granule::name_of(kind(call)));
  put_fields(out, call, false);
  return out;
}

std::string to_text(const Call& call, DriverStatus status) {
  std::string out = to_text(call);
  out += " => ";
  put_status(out, status);
  if (status == DriverStatus::kSuccess) put_fields(out, call, true);
  return out;
}

std::optional<Traced> from_text(std::string_view line) {
  const auto kind = call_named(cut(line, ' '));
  if (!kind) return std::nullopt;
  Traced traced{make_call(*kind), DriverStatus::kSuccess};
  std::bitset<64> read;
  bool outputs = false;
  while (!line.empty()) {
    const std::string_view token = cut(line, ' ');
    if (token.empty()) continue;
    if (token == kArrow) {
      if (outputs || !get_status(cut(line, ' '), traced.status)) return std::nullopt;
      outputs = true;
    } else if (!get_field(traced.call, token, outputs, read)) {
      return std::nullopt;
    }
  }
  if (traced.status != DriverStatus::kSuccess) poison_outputs(traced.call);
  return traced;
}

DriverStatus TraceBackend::execute(Call& call) noexcept {
  const DriverStatus status = inner_.execute(call);
  sink_(to_text(call, status));
  return status;
}

}  // namespace granule::trace
