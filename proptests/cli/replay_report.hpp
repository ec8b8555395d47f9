// JSON lines and JUnit XML of a replay on the model, for machines.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include <granule/prop/run.hpp>

namespace granule::cli {

/// Collects what became of each program; nothing is written where no file was asked for.
class ReplayReport {
 public:
  /// Appends JSON lines to `json` as programs end; finish() writes `junit`. Empty: neither.
  ReplayReport(const std::string& json, std::string junit);
  /// False if the file of JSON lines cannot be written.
  bool is_open() const { return good_; }
  void add(const std::string& file, const prop::Program& program, const prop::RunReport& report);
  /// False if a file could not be written.
  bool finish();

 private:
  struct Case {
    std::string file;
    std::string name;
    prop::RunStatus status;
    std::string signature;
    std::string message;
  };
  std::ofstream json_;
  std::string junit_;
  bool good_ = true;
  std::vector<Case> cases_;
};

}  // namespace granule::cli
