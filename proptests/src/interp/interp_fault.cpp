// Faults: refused and falsified calls, failing host memory, stolen device memory, ignored hints.
#include <granule/backend_api/checked.hpp>

#include "args.hpp"
#include "faults.hpp"

namespace granule::prop {
namespace {

/// `times=N` or `times=all`.
std::uint64_t times_of(const Statement& s, std::uint64_t fallback) {
  const Word* times = s.value<Word>("times");
  if (!times) return fallback;
  if (times->text == "all") return fault::FaultRule::kAlways;
  std::uint64_t value = 0;
  for (const char c : times->text)
    if (c >= '0' && c <= '9') value = value * 10 + static_cast<std::uint64_t>(c - '0');
  return value;
}

/// The contexts of all devices are lost; `wrong` says why that cannot be had.
std::string context_fault(World& world, const Statement& s, fault::FaultRule& rule) {
  if (!world.machine->is_model()) return "contexts are lost on the model only";
  if (!is_sticky(rule.status)) return "no error of a context";
  if (s.has("after") || s.has("times")) return "a context is lost once, before the call";
  rule.timing = s.has("sticky") ? fault::Timing::kSticky : fault::Timing::kSurfacing;
  return {};
}

Reply do_fail(World& world, const Statement& s) {
  fault::FaultRule rule;
  const std::string& call = s.operand<Word>(0)->text;
  if (call != "any") {
    rule.call = call_named(call);
    if (!rule.call) return Reply::skipped("no driver call `" + call + "`");
  }
  const Word* condition = s.value<Word>("if");
  if (condition && condition->text != "rdma")
    return Reply::skipped("no condition `" + condition->text + "`");
  if (condition) rule.condition = fault::Condition::kRdma;
  const auto status = status_named(s.value<Word>("with")->text);
  if (!status) return Reply::skipped("no result `" + s.value<Word>("with")->text + "`");
  rule.status = *status;
  rule.nth = Args(world, s).size("nth", 1);
  const bool each = condition && !s.has("nth");
  rule.times = times_of(s, each ? fault::FaultRule::kAlways : 1);
  if (s.has("sticky") || s.has("surfacing")) {
    const std::string wrong = context_fault(world, s, rule);
    if (!wrong.empty()) return Reply::skipped(wrong);
  } else if (s.has("after")) {
    rule.timing = fault::Timing::kAfter;
  }
  world.faults->add(rule);
  world.any_fault = true;
  return Reply::ok();
}

Reply do_fail_host_alloc(World& world, const Statement& s) {
  world.host_memory.fail(Args(world, s).size("nth", 1), times_of(s, 1));
  world.any_fault = true;
  return Reply::ok();
}

Reply do_steal(World& world, const Statement& s) {
  const auto size = checked_round_up(Args(world, s).size(0), world.sizes.granule);
  if (!size || *size == 0) return Reply::skipped("nothing to steal");
  MemCreate create;
  create.size = *size;
  const DriverStatus status = world.harness_call(create);
  if (status == DriverStatus::kSuccess) {
    world.ballast.push_back(create.handle);
    ++world.stolen;
  }
  return Reply::of(status);
}

Reply do_unsteal(World& world, const Statement&) {
  give_ballast_back(world);
  return Reply::ok();
}

Reply do_ignore_hints(World& world, const Statement& s) {
  world.faults->set_ignore_hints(s.operand<Word>(0)->text == "on");
  return Reply::ok();
}

Reply do_no_faults(World& world, const Statement&) {
  lift_faults(world);
  return Reply::ok();
}

}  // namespace

void give_ballast_back(World& world) {
  for (const AllocationHandle handle : world.ballast) {
    MemRelease release;
    release.handle = handle;
    world.harness_call(release);
  }
  world.ballast.clear();
}

void lift_faults(World& world) {
  world.faults->clear();
  world.host_memory.clear_faults();
  give_ballast_back(world);
}

void add_fault_handlers(std::vector<Handler>& table) {
  set_handler(table, Verb::kFail, do_fail);
  set_handler(table, Verb::kFailHostAlloc, do_fail_host_alloc);
  set_handler(table, Verb::kSteal, do_steal);
  set_handler(table, Verb::kUnsteal, do_unsteal);
  set_handler(table, Verb::kIgnoreHints, do_ignore_hints);
  set_handler(table, Verb::kNoFaults, do_no_faults);
}

}  // namespace granule::prop
