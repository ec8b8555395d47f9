// What a program runs on: a driver, and an oracle that knows what the driver must hold.
// On the model the two are one; on hardware the oracle is a model that follows each call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <granule/backend_api/backend.hpp>
#include <granule/model/model.hpp>

namespace granule::prop {

/// A difference between a driver and the oracle that follows it.
struct MachineFinding {
  std::string signature;  // what stays the same from run to run
  std::string message;
};

class Machine {
 public:
  Machine() = default;
  Machine(const Machine&) = delete;
  Machine& operator=(const Machine&) = delete;
  virtual ~Machine() = default;

  /// Executes calls.
  virtual Backend& driver() = 0;
  /// What the driver holds after the calls made so far.
  virtual model::DriverState& oracle() = 0;
  /// The logical thread of the calls that follow on this OS thread.
  virtual void set_thread(std::uint32_t number) = 0;
  /// True if stream work runs when the harness says, and waits that cannot end are answered.
  virtual bool is_model() const = 0;
  /// Asked after each statement: where driver and oracle differed since it was last asked.
  virtual std::optional<MachineFinding> after_statement() { return std::nullopt; }
  /// How many choices of the driver the oracle took over although it would have answered otherwise.
  virtual std::uint64_t followed() const { return 0; }
};

/// The model, alone.
class ModelMachine final : public Machine {
 public:
  explicit ModelMachine(model::Config config) : backend_(std::move(config)) {}
  Backend& driver() override { return backend_; }
  model::DriverState& oracle() override { return backend_.state(); }
  void set_thread(std::uint32_t number) override { backend_.set_thread(model::ThreadId{number}); }
  bool is_model() const override { return true; }
  model::ModelBackend& backend() { return backend_; }

 private:
  model::ModelBackend backend_;
};

}  // namespace granule::prop
