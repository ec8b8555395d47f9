// Every verb of the format has a grammar that reads well and a handler that runs it.
#include <gtest/gtest.h>

#include <granule/prop/verbs.hpp>

#include "interp/world.hpp"

namespace granule::prop {
namespace {

TEST(Verbs, EachHasAHandler) {
  for (std::size_t i = 0; i < kVerbCount; ++i) {
    const Verb verb = static_cast<Verb>(i);
    EXPECT_NE(handler_of(verb), nullptr) << spelling_of(verb);
  }
}

TEST(Verbs, EachGrammarIsUnderstood) {
  for (std::size_t i = 0; i < kVerbCount; ++i) {
    const VerbSpec& spec = spec_of(static_cast<Verb>(i));
    EXPECT_FALSE(spec.spelling.empty());
    for (const OperandSpec& operand : spec.operands)
      EXPECT_NE(operand.kind, OperandKind::kNone) << spec.spelling;
    for (const OptionSpec& option : spec.options) EXPECT_FALSE(option.key.empty());
  }
}

}  // namespace
}  // namespace granule::prop
