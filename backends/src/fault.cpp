// Deciding which call fails, and failing it. Decisions are made under the lock, calls outside it.
#include <granule/backends/fault.hpp>

#include <type_traits>
#include <utility>

namespace granule::fault {
namespace {

bool is_driver_call(const Call& call) {
  const CallInfo& info = info_of(kind(call));
  return info.family != CallFamily::kHarness && info.since != 0;
}

bool asks_for_rdma(const Call& call) {
  return std::visit(
      [](const auto& c) {
        bool asked = false;
        for_each_field(c, [&](const auto& field, const auto& member) {
          using T = std::remove_cvref_t<decltype(member)>;
          if constexpr (std::is_same_v<T, AllocationProperties>)
            asked = asked || (!is_output(field.role) && member.rdma != 0);
        });
        return asked;
      },
      call);
}

bool is_of_contexts(Timing timing) {
  return timing == Timing::kSticky || timing == Timing::kSurfacing;
}

std::size_t index_of(FaultClass kind) { return static_cast<std::size_t>(kind); }

}  // namespace

std::string_view name_of(FaultClass kind) noexcept {
  static constexpr std::array<std::string_view, kFaultClasses> kNames{
      "refused", "done", "not_ready", "property", "sticky", "surfacing", "hint", "stolen", "host"};
  return kNames[index_of(kind)];
}

FaultClass class_of(const FaultRule& rule) noexcept {
  switch (rule.timing) {
    case Timing::kAfter:
      return FaultClass::kDone;
    case Timing::kSticky:
      return FaultClass::kSticky;
    case Timing::kSurfacing:
      return FaultClass::kSurfacing;
    case Timing::kBefore:
      break;
  }
  if (rule.status == DriverStatus::kNotReady) return FaultClass::kNotReady;
  return rule.condition != Condition::kNone ? FaultClass::kProperty : FaultClass::kRefused;
}

bool matches(const FaultRule& rule, const Call& call) noexcept {
  if (rule.call ? *rule.call != kind(call) : !is_driver_call(call)) return false;
  return rule.condition == Condition::kNone || asks_for_rdma(call);
}

FaultBackend::Decision FaultBackend::decide(const Call& call) {
  const std::lock_guard lock(mutex_);
  Decision decision;
  decision.generation = generation_;
  if (is_driver_call(call)) ++counted_;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    Entry& entry = rules_[i];
    if (!matches(entry.rule, call)) continue;
    const std::uint64_t number = ++entry.seen;
    const bool fires = number >= entry.rule.nth && number - entry.rule.nth < entry.rule.times;
    if (!fires || decision.rule) continue;
    decision.rule = i;
    decision.status = entry.rule.status;
    decision.timing = entry.rule.timing;
    ++entry.fired;
    ++fired_in_all_;
    ++by_class_[index_of(class_of(entry.rule))];
  }
  return decision;
}

void FaultBackend::undo_count(const Call& call, const Decision& decision) {
  const std::lock_guard lock(mutex_);
  if (is_driver_call(call)) --counted_;
  if (decision.generation != generation_) return;
  for (Entry& entry : rules_)
    if (matches(entry.rule, call) && entry.seen > 0) --entry.seen;
}

void FaultBackend::undo_firing(const Decision& decision) {
  if (!decision.rule) return;
  const std::lock_guard lock(mutex_);
  --fired_in_all_;
  if (decision.generation != generation_) return;
  --rules_[*decision.rule].fired;
  --by_class_[index_of(class_of(rules_[*decision.rule].rule))];
}

void FaultBackend::note_hint() {
  const std::lock_guard lock(mutex_);
  ++by_class_[index_of(FaultClass::kHint)];
}

bool FaultBackend::ignores_hints() const {
  const std::lock_guard lock(mutex_);
  return ignore_hints_;
}

DriverStatus FaultBackend::forward(Call& call) {
  auto* reserve = std::get_if<MemAddressReserve>(&call);
  if (!reserve || !reserve->hint || !ignores_hints()) return inner_.execute(call);
  const DevicePtr hint = std::exchange(reserve->hint, DevicePtr{});
  DriverStatus status = inner_.execute(call);
  if (status == DriverStatus::kSuccess && reserve->ptr == hint) {
    // The driver's own choice is the very place asked for: take another, then give this one back.
    MemAddressFree give_back;
    give_back.ptr = reserve->ptr;
    give_back.size = reserve->size;
    status = inner_.execute(call);
    inner_.run(give_back);
  }
  reserve->hint = hint;
  if (status == DriverStatus::kSuccess) note_hint();
  return status;
}

DriverStatus FaultBackend::execute(Call& call) noexcept {
  if (current_origin() == CallOrigin::kHarness) {
    const DriverStatus status = inner_.execute(call);
    if (status != DriverStatus::kSuccess) poison_outputs(call);
    return status;
  }
  Decision decision = decide(call);
  if (decision.rule && is_of_contexts(decision.timing)) {
    if (lose_contexts_) lose_contexts_(decision.status, decision.timing == Timing::kSticky);
    decision.rule.reset();  // the call is made, for what it is worth
  }
  if (decision.rule && decision.timing == Timing::kBefore) {
    poison_outputs(call);
    return decision.status;
  }
  DriverStatus status = forward(call);
  if (decision.rule && status == DriverStatus::kSuccess) {
    const std::lock_guard lock(mutex_);
    orphans_.push_back({*decision.rule, call});
    status = decision.status;
  } else if (status == DriverStatus::kWouldBlock) {
    undo_count(call, decision);
    undo_firing(decision);
  } else {
    undo_firing(decision);  // the call failed on its own: nothing was falsified
  }
  if (status != DriverStatus::kSuccess) poison_outputs(call);
  return status;
}

std::size_t FaultBackend::add(const FaultRule& rule) {
  const std::lock_guard lock(mutex_);
  rules_.push_back({rule});
  return rules_.size() - 1;
}

void FaultBackend::clear() {
  const std::lock_guard lock(mutex_);
  rules_.clear();
  ++generation_;
  ignore_hints_ = false;
}

FaultBackend::Saved FaultBackend::save() const {
  const std::lock_guard lock(mutex_);
  return {rules_, counted_, fired_in_all_, by_class_, generation_};
}

void FaultBackend::restore(const Saved& saved) {
  const std::lock_guard lock(mutex_);
  if (saved.generation != generation_) return;
  rules_ = saved.rules;
  counted_ = saved.counted;
  fired_in_all_ = saved.fired_in_all;
  by_class_ = saved.by_class;
}

void FaultBackend::set_ignore_hints(bool on) {
  const std::lock_guard lock(mutex_);
  ignore_hints_ = on;
}

std::uint64_t FaultBackend::fired(std::size_t rule) const {
  const std::lock_guard lock(mutex_);
  return rule < rules_.size() ? rules_[rule].fired : 0;
}

std::uint64_t FaultBackend::seen(std::size_t rule) const {
  const std::lock_guard lock(mutex_);
  return rule < rules_.size() ? rules_[rule].seen : 0;
}

std::uint64_t FaultBackend::fired_in_all() const {
  const std::lock_guard lock(mutex_);
  return fired_in_all_;
}

std::array<std::uint64_t, kFaultClasses> FaultBackend::fired_by_class() const {
  const std::lock_guard lock(mutex_);
  return by_class_;
}

std::uint64_t FaultBackend::counted_calls() const {
  const std::lock_guard lock(mutex_);
  return counted_;
}

std::vector<Orphan> FaultBackend::orphans() const {
  const std::lock_guard lock(mutex_);
  return orphans_;
}

std::vector<Orphan> FaultBackend::take_orphans() {
  const std::lock_guard lock(mutex_);
  return std::exchange(orphans_, {});
}

}  // namespace granule::fault
