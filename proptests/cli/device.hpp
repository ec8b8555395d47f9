// Work on a device: what the command does with `--backend cuda`, filled in where a driver backend
// is built into it.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <granule/backends/record.hpp>
#include <granule/prop/campaign.hpp>
#include <granule/prop/run.hpp>

namespace granule::cli {

/// Flags that all work on a device shares.
struct DeviceFlags {
  std::string backend = "model";  // model, cuda, or second-model: a model in the device's place
  bool alone = false;             // each program in a process of its own
  std::string hang_after = "60s";
  std::string known = "gputests/divergences";  // folder of lists, or one list
  std::string json;                            // JSON lines are appended
  std::string junit;
  bool keep_going = false;  // differences are printed, and the program goes on
  std::string record;       // recordings are appended
  std::string recorded;     // replay only: a recording to be held against the model
};

struct DeviceReplay {
  DeviceFlags flags;
  std::vector<std::string> files;
  std::string only;
  bool quiet = false;
  prop::RunOptions run;
};

struct DeviceCheck {
  DeviceFlags flags;
  prop::CampaignOptions campaign;
  std::string out;
  std::chrono::milliseconds shrink_time{20000};
  std::string target = "core";  // zoo:NAME: it has a defect, which the device is to show
};

/// The parts that need a driver backend; null where there is none. Each returns an exit code.
struct DeviceWork {
  int (*replay)(const DeviceReplay& work) = nullptr;
  int (*check)(const DeviceCheck& work) = nullptr;
  int (*recorded)(const std::string& file) = nullptr;
  std::string (*c_source)(const std::string& program,
                          const std::vector<record::Entry>& calls) = nullptr;
};
DeviceWork& device_work();

/// Exit code and message for a command without a driver backend.
int no_device_work();

}  // namespace granule::cli
