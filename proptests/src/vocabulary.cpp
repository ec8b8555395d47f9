// Words and numbers that the grammar leaves open and that mean something from a closed list only.
// A misspelt one is an error of the text, not a statement to be skipped.
#include <algorithm>
#include <array>

#include <granule/backend_api/call.hpp>
#include <granule/backend_api/checked.hpp>
#include <granule/backend_api/status.hpp>

#include <granule/prop/text.hpp>

#include "statement.hpp"

namespace granule::prop::detail {
namespace {

using Unknown = std::optional<UnknownWord>;

Unknown unless(bool known, std::string_view word, std::string_view expected) {
  if (known) return std::nullopt;
  return UnknownWord{std::string(word), expected};
}

bool is_count(std::string_view text) {
  return text == "all" || (!text.empty() && text.size() < 19 &&
                           text.find_first_not_of("0123456789") == std::string_view::npos);
}

Unknown unknown_in_fail(const Statement& s) {
  const Word* times = s.value<Word>("times");
  if (times && !is_count(times->text)) return unless(false, times->text, "times=N or times=all");
  if (s.verb == Verb::kFailHostAlloc) return std::nullopt;
  const std::string& call = s.operand<Word>(0)->text;
  if (call != "any" && !call_named(call))
    return unless(false, call, "the name of a driver call, any or host_alloc");
  if (const Word* status = s.value<Word>("with"); status && !status_named(status->text))
    return unless(false, status->text, "the name of a driver's result, as CUDA_ERROR_UNKNOWN");
  const Word* condition = s.value<Word>("if");
  return unless(!condition || condition->text == "rdma", condition ? condition->text : "",
                "if=rdma");
}

Unknown unknown_in_needs(const Statement& s) {
  constexpr std::array<std::string_view, 6> kFeatures{"host_numa", "posix_fd", "fabric",
                                                      "pools",     "rdma",     "peer"};
  const Word* feature = s.value<Word>("feature");
  const bool known =
      !feature || std::find(kFeatures.begin(), kFeatures.end(), feature->text) != kFeatures.end();
  return unless(known, feature ? feature->text : "",
                "host_numa, posix_fd, fabric, pools, rdma or peer");
}

Unknown unknown_in_device(const Statement& s) {
  const SizeContext none;
  if (const Size* number = s.operand<Size>(0); number && number->evaluate(none) >= kMostDevices)
    return unless(false, "", "a device from 0 to 15");
  const Size* granularity = s.value<Size>("granularity");
  return unless(!granularity || is_possible_granularity(granularity->evaluate(none)), "granularity",
                "a granularity that is a power of two from 4 KiB to 1 GiB");
}

Unknown unknown_in_resource(const Statement& s) {
  for (const std::string_view key : {"slack", "fit"}) {
    const Size* part = s.value<Size>(key);
    if (!part) continue;
    const bool percent =
        part->terms.size() == 1 &&
        (part->terms[0].kind == Term::Kind::kPercent ||
         (part->terms[0].kind == Term::Kind::kNumber && part->terms[0].unit == Unit::kNone));
    if (!percent) return UnknownWord{std::string(key), "a percentage, as 25%"};
  }
  return std::nullopt;
}

}  // namespace

std::optional<UnknownWord> unknown_word(const Statement& s) {
  switch (s.verb) {
    case Verb::kFail:
    case Verb::kFailHostAlloc:
      return unknown_in_fail(s);
    case Verb::kNeeds:
      return unknown_in_needs(s);
    case Verb::kDevice:
      return unknown_in_device(s);
    case Verb::kResourceVmm:
      return unknown_in_resource(s);
    case Verb::kExpectCalls: {
      const std::string& call = s.operand<Word>(0)->text;
      return unless(call == "any" || call_named(call), call, "the name of a driver call, or any");
    }
    default:
      return std::nullopt;
  }
}

}  // namespace granule::prop::detail
