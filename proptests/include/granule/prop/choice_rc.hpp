// Decisions made by RapidCheck, so that its properties drive our generators and shrink through
// them. For tests that link RapidCheck; nothing else includes this.
#pragma once

#include <rapidcheck.h>
#include <granule/prop/choice.hpp>
#include <granule/prop/generate.hpp>

namespace granule::prop {

/// Draws every decision from RapidCheck. Only inside a property or rc::gen::exec.
class RapidCheckChooser final : public Chooser {
 private:
  std::uint64_t choose(std::uint64_t bound) override {
    return *rc::gen::inRange<std::uint64_t>(0, bound);
  }
};

/// Programs of our generator as values of RapidCheck.
inline rc::Gen<Program> arbitrary_program(const GenerateOptions& options) {
  return rc::gen::exec([options] {
    RapidCheckChooser chooser;
    return generate(chooser, options);
  });
}

}  // namespace granule::prop
