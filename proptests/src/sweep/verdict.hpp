// What a sweep asks of a faulted run beyond the invariants that every run keeps: did the fault
// fire, is the first error the one that is reported, did a passing NOT_READY stay unnoticed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "faults.hpp"
#include "watch.hpp"

namespace granule::prop::sweep {

/// True if the watched run of a program with those `fail` statements failed what `fault` names.
bool has_fired(const Fault& fault, const Watch& watch, const std::vector<std::size_t>& fails);

/// The same of two faults that fire once each.
bool have_fired(const Fault& first, const Fault& second, const Watch& watch,
                const std::vector<std::size_t>& fails);

/// What each statement gave, by its number in the program without faults; of a repeated one the
/// last answer that is no success.
std::vector<Answer> answers_of(std::size_t statements, const Watch& watch,
                               const std::vector<std::size_t>& fails);

/// A statement that gave something else than it may have.
struct WrongAnswer {
  std::size_t statement = 0;      // in the program without faults
  std::vector<Outcome> expected;  // what it may give
  std::string message;
};

/// After one fault: the error is that fault's.
std::optional<WrongAnswer> judge_one(const Fault& fault, const std::vector<Answer>& base,
                                     const std::vector<Answer>& answers);

/// After two: an error that the first had led to is still the one that is reported. `alone`: what
/// the statements gave with the first fault only.
std::optional<WrongAnswer> judge_two(const Fault& first, const Fault& second,
                                     const std::vector<Answer>& base,
                                     const std::vector<Answer>& alone,
                                     const std::vector<Answer>& answers);

}  // namespace granule::prop::sweep
