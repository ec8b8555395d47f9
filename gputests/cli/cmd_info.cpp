// granule info: what the machine offers, as driver and management library say.
#include <cstdio>
#include <memory>
#include <string>

#include <granule/backends/cuda_info.hpp>

#include "command.hpp"

namespace granule::cli {
namespace {

struct InfoFlags {
  std::string backend = "cuda";
  bool json = false;
};

void info(const InfoFlags& flags) {
  auto opened = cuda::CudaBackend::open();
  if (!opened.ok()) {
    std::fprintf(stderr, "granule: no usable driver: %s\n", to_string(opened.error()).c_str());
    return set_exit_code(kUnfit);
  }
  const cuda::Info found = cuda::describe(**opened);
  std::printf("%s\n", flags.json ? cuda::to_json(found).c_str() : cuda::to_text(found).c_str());
  const std::string unfit = cuda::unfit_reason(found);
  if (unfit.empty()) return;
  std::fprintf(stderr, "granule: unfit for exact checks: %s\n", unfit.c_str());
  set_exit_code(kUnfit);
}

void add_info(CLI::App& app) {
  auto flags = std::make_shared<InfoFlags>();
  CLI::App* command = app.add_subcommand("info", "Describe driver and devices");
  command->add_option("--backend", flags->backend, "Which driver")
      ->check(CLI::IsMember({"cuda"}))
      ->capture_default_str();
  command->add_flag("--json", flags->json, "One JSON object");
  command->footer("Exit code 3 if the machine is unfit for exact checks of free memory.");
  command->callback([flags] { info(*flags); });
}

const Command command(90, add_info);

}  // namespace
}  // namespace granule::cli
