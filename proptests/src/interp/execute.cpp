// From a verb to its handler; host functions; the completeness of the table.
#include "args.hpp"

namespace granule::prop {
namespace {

const std::vector<Handler>& handlers() {
  static const std::vector<Handler> table = [] {
    std::vector<Handler> made(kVerbCount, nullptr);
    add_setup_handlers(made);
    add_stream_handlers(made);
    add_vmm_handlers(made);
    add_memory_handlers(made);
    add_pool_handlers(made);
    add_event_handlers(made);
    add_fault_handlers(made);
    add_check_handlers(made);
    add_ledger_handlers(made);
    add_bytes_handlers(made);
    add_alloc_handlers(made);
    add_resource_handlers(made);
    add_place_handlers(made);
    return made;
  }();
  return table;
}

/// What a host function has to do, and what came of it.
struct HostCall {
  World* world = nullptr;
  const Statement* statement = nullptr;
  bool ran = false;
  Reply reply;
};

void run_host_call(void* argument) {
  auto& call = *static_cast<HostCall*>(argument);
  const OriginScope scope(CallOrigin::kProgram);
  call.reply = handler_of(call.statement->verb)(*call.world, *call.statement);
  call.ran = true;
}

/// Queues the call as a host function and waits until it has run.
Reply in_host_function(World& world, const Statement& s) {
  auto* stream = world.find_as<StreamObject>(s.host_function);
  if (!stream) return Reply::skipped("no stream `" + s.host_function + "`");
  const std::string name = world.expand(s.host_function);
  for (const std::string& held : world.held)
    if (held == name) return Reply::of(DriverStatus::kWouldBlock);
  if (world.is_capturing(stream->lane)) return Reply::skipped("the stream captures");
  const auto owned = std::make_shared<HostCall>(HostCall{&world, &s, false, {}});
  HostCall& call = *owned;
  LaunchHostFunc launch;
  launch.function = run_host_call;
  launch.argument = &call;
  launch.stream = stream->handle;
  const DriverStatus status = world.harness_call(launch);
  if (status != DriverStatus::kSuccess) return Reply::of(status);
  constexpr int kRounds = 2000;
  for (int i = 0; i < kRounds && !call.ran; ++i) {
    Pause pause;
    pause.duration_ns = 1000000;
    world.harness_call(pause);
  }
  if (call.ran) return call.reply;
  world.late_host_calls.push_back(owned);  // it may still run
  return Reply::of(DriverStatus::kWouldBlock);
}

}  // namespace

Handler handler_of(Verb verb) { return handlers()[static_cast<std::size_t>(verb)]; }

Reply execute(World& world, const Statement& statement) {
  if (!statement.host_function.empty()) return in_host_function(world, statement);
  return handler_of(statement.verb)(world, statement);
}

}  // namespace granule::prop
