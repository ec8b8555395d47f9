// Checks of values and states: expect same, access, granules, pool, calls, done; require.
#include "args.hpp"

namespace granule::prop {
namespace {

std::string numbers(std::uint64_t wanted, std::uint64_t found) {
  return "expected " + std::to_string(wanted) + ", found " + std::to_string(found);
}

Reply compare(std::uint64_t wanted, std::uint64_t found) {
  return wanted == found ? Reply::ok() : Reply::failed(numbers(wanted, found));
}

std::string hex_in_check(std::uint64_t value) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value % 16]);
    value /= 16;
  } while (value != 0);
  return "0x" + text;
}

enum class Wanted : std::uint8_t { kSame, kDiffer };

template <Wanted kWanted, Reply::Kind kOtherwise>
Reply compare_values(World& world, const Statement& s) {
  Args args(world, s);
  const std::uint64_t a = args.address(0);
  const std::uint64_t b = args.address(1);
  if (args.missing()) return args.skip();
  if ((a == b) == (kWanted == Wanted::kSame)) return Reply::ok();
  return Reply::because(kOtherwise, hex_in_check(a) + " and " + hex_in_check(b) +
                                        (a == b ? " are the same" : " are not the same"));
}

template <Reply::Kind kOtherwise>
Reply do_aligned(World& world, const Statement& s) {
  Args args(world, s);
  const std::uint64_t value = args.address(0);
  const std::uint64_t unit = args.size(1);
  if (args.missing()) return args.skip();
  if (unit != 0 && value % unit == 0) return Reply::ok();
  return Reply::because(kOtherwise,
                        hex_in_check(value) + " is not a multiple of " + std::to_string(unit));
}

Reply do_calls(World& world, const Statement& s) {
  const std::string& name = s.operand<Word>(0)->text;
  const std::uint64_t wanted = Args(world, s).size(1);
  const Tap& tap = world.driver();
  if (name == "any") return compare(wanted, tap.calls() - world.marked.total);
  const auto kind = call_named(name);
  if (!kind) return Reply::skipped("no driver call `" + name + "`");
  const std::uint64_t before = world.marked.by_kind[static_cast<std::size_t>(*kind)];
  return compare(wanted, tap.calls(*kind) - before);
}

Reply do_mark(World& world, const Statement&) {
  world.marked = world.driver().counts();
  return Reply::ok();
}

Reply do_warnings(World& world, const Statement& s) {
  return compare(Args(world, s).size(0), world.sink.reports.size());
}

char granule_letter(World& world, std::uint64_t address, bool access) {
  if (!world.oracle().mapping_at(address)) return '-';
  if (!access) return 'M';
  MemGetAccess call;
  call.ptr.value = address;
  if (world.harness_call(call) != DriverStatus::kSuccess) return '?';
  return static_cast<char>('0' + static_cast<int>(call.access));
}

Reply do_granules(World& world, const Statement& s) {
  Args args(world, s);
  const std::uint64_t base = args.address(0);
  if (args.missing()) return args.skip();
  const std::string& wanted = s.operand<Word>(1)->text;
  std::string found;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    found += granule_letter(world, base + i * world.sizes.granule, wanted[i] != 'M');
  return wanted == found ? Reply::ok() : Reply::failed("expected " + wanted + ", found " + found);
}

Reply do_pool(World& world, const Statement& s) {
  Args args(world, s);
  const std::uint64_t pool = args.address(0);
  if (args.missing()) return args.skip();
  constexpr PoolAttribute kFields[] = {PoolAttribute::kReservedMemCurrent,
                                       PoolAttribute::kReservedMemHigh,
                                       PoolAttribute::kUsedMemCurrent, PoolAttribute::kUsedMemHigh};
  std::string wanted;
  std::string found;
  for (std::size_t i = 0; i < 4; ++i) {
    MemPoolGetAttribute call;
    call.pool.value = pool;
    call.attribute = kFields[i];
    const DriverStatus status = world.harness_call(call);
    if (status != DriverStatus::kSuccess) return Reply::failed(std::string(name_of(status)));
    wanted += " " + std::to_string(args.size(i + 1));
    found += " " + std::to_string(call.value);
  }
  return wanted == found ? Reply::ok() : Reply::failed("expected" + wanted + ", found" + found);
}

Reply do_violation(World& world, const Statement& s) {
  for (Finding& finding : world.driver().take_findings())
    world.findings.push_back(std::move(finding));
  const std::string& kind = s.operand<Word>(0)->text;
  for (const Finding& finding : world.findings)
    if (name_of(finding.violation.kind) == kind) return Reply::ok();
  return Reply::failed("no " + kind + " was reported");
}

bool is_done(World& world, const EventObject& event) {
  if (world.machine->is_model()) return world.oracle().event_done(event.handle);
  EventQuery query;
  query.event = event.handle;
  return world.harness_call(query) == DriverStatus::kSuccess;
}

template <bool kDone>
Reply do_event_state(World& world, const Statement& s) {
  const std::string& name = s.operand<Name>(0)->text;
  const auto* event = world.find_as<EventObject>(name);
  if (!event) return Reply::skipped("no event `" + name + "`");
  const bool done = is_done(world, *event);
  if (done) world.timeline.host_learns(event->clock);
  if (done == kDone) return Reply::ok();
  return Reply::failed(done ? "the event is done" : "the event is pending");
}

}  // namespace

void add_check_handlers(std::vector<Handler>& table) {
  constexpr auto kFailed = Reply::Kind::kFailed;
  constexpr auto kUnmet = Reply::Kind::kUnmet;
  set_handler(table, Verb::kExpectSame, compare_values<Wanted::kSame, kFailed>);
  set_handler(table, Verb::kExpectDiffer, compare_values<Wanted::kDiffer, kFailed>);
  set_handler(table, Verb::kExpectAligned, do_aligned<kFailed>);
  set_handler(table, Verb::kRequireSame, compare_values<Wanted::kSame, kUnmet>);
  set_handler(table, Verb::kRequireDiffer, compare_values<Wanted::kDiffer, kUnmet>);
  set_handler(table, Verb::kRequireAligned, do_aligned<kUnmet>);
  set_handler(table, Verb::kExpectCalls, do_calls);
  set_handler(table, Verb::kMark, do_mark);
  set_handler(table, Verb::kExpectWarnings, do_warnings);
  set_handler(table, Verb::kExpectGranules, do_granules);
  set_handler(table, Verb::kExpectPool, do_pool);
  set_handler(table, Verb::kExpectViolation, do_violation);
  set_handler(table, Verb::kExpectDone, do_event_state<true>);
  set_handler(table, Verb::kExpectPending, do_event_state<false>);
}

std::optional<Failure> check_landings(World& world, bool all) {
  std::vector<Landing> open;
  for (const Landing& landing : world.landings) {
    TakeLanding take;
    take.landing = landing.number;
    const DriverStatus status = world.harness_call(take);
    if (status == DriverStatus::kNotReady) {
      if (!all) open.push_back(landing);
      continue;
    }
    if (status != DriverStatus::kSuccess) continue;  // the read never ran: a fault before it
    if (take.found.kind == ByteSummary::Kind::kUniform && take.found.byte == landing.byte) continue;
    Failure failure;
    failure.kind = Failure::Kind::kContents;
    failure.statement = landing.statement;
    failure.line = world.program.statements[landing.statement].line.number;
    failure.signature = "contents of an asynchronous read";
    failure.message =
        "the read found " +
        (take.found.kind == ByteSummary::Kind::kUniform ? std::to_string(take.found.byte)
                                                        : std::string("mixed or unknown bytes")) +
        " instead of " + std::to_string(landing.byte);
    return failure;
  }
  world.landings = std::move(open);
  return std::nullopt;
}

}  // namespace granule::prop
