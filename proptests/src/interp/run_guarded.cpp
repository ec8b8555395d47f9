// A run whose exceptions are failures of the program that met them.
#include <exception>
#include <string>

#include <granule/prop/run.hpp>

namespace granule::prop {

RunReport run_guarded(const Program& program, const RunOptions& options) {
  try {
    return run(program, options);
  } catch (const std::exception& error) {
    RunReport report;
    report.status = RunStatus::kFailed;
    report.failure = Failure{};
    report.failure->kind = Failure::Kind::kInvariant;
    report.failure->statement = program.statements.size();
    report.failure->signature = std::string("exception ") + error.what();
    report.failure->message = std::string("an exception left the library: ") + error.what();
    return report;
  }
}

}  // namespace granule::prop
