// RapidCheck drives the generator: what it draws is legal, runs clean, and shrinks through it.
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <granule/prop/choice_rc.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/text.hpp>

namespace granule::prop {
namespace {

GenerateOptions short_programs() {
  GenerateOptions options;
  options.operations = 12;
  return options;
}

RC_GTEST_PROP(RapidCheckPrograms, ParseBack, ()) {
  const Program program = *arbitrary_program(short_programs());
  const ParseResult parsed = parse(to_text(program), program.name + ".granule");
  RC_ASSERT(parsed.ok());
  RC_ASSERT(parsed.document.programs.at(0) == program);
}

RC_GTEST_PROP(RapidCheckPrograms, KeepTheInvariants, ()) {
  const Program program = *arbitrary_program(short_programs());
  const RunReport report = run(program);
  if (report.failure) RC_LOG() << to_text(program) << describe(program, *report.failure);
  RC_ASSERT(report.ok());
}

RC_GTEST_PROP(RapidCheckPrograms, EverySubsetIsLegal, ()) {
  Program program = *arbitrary_program(short_programs());
  const auto keep =
      *rc::gen::container<std::vector<bool>>(program.statements.size(), rc::gen::arbitrary<bool>());
  std::vector<Statement> kept;
  for (std::size_t i = 0; i < program.statements.size(); ++i)
    if (keep[i]) kept.push_back(program.statements[i]);
  program.statements = std::move(kept);
  const RunReport report = run(program);
  if (report.failure) RC_LOG() << to_text(program) << describe(program, *report.failure);
  RC_ASSERT(report.ok());
}

}  // namespace
}  // namespace granule::prop
