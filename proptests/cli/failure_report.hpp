// What a person is shown of a failing program, and the file it is saved to.
#pragma once

#include <string>

#include <granule/prop/program.hpp>
#include <granule/prop/run.hpp>
#include <granule/prop/shrink.hpp>

namespace granule::cli {

/// "--driver exact --schedule lazy --seed 7 ...": the flags with which a program runs as in
/// `options`; those at their defaults are left out.
std::string flags_of(const prop::RunOptions& options, const std::string& target);

/// The file name of a failure, without directory: words of the signature, seed and number.
std::string failure_file_name(const std::string& signature, const std::string& tag);

/// Writes a program with comment lines in front. Makes the directory. False: it could not be
/// written, and stderr says why.
bool save_program(const std::string& path, const prop::Program& program,
                  const std::string& comment);

/// Where the outcome depends on an interleaving: the seed under which the shrunk program fails.
void settle_seed(const prop::ShrinkResult& small, prop::RunOptions& options);

/// What the failing program does at its end, by running it once more.
struct Picture {
  std::string failure;  // describe()
  std::string drawing;  // of the address space
};
Picture picture_of(const prop::Program& program, const prop::RunOptions& options);

/// "granule show --html FILE.html FLAGS FILE": what opens a saved failure as a page. `flags` are
/// those of flags_of.
std::string look_command(const std::string& flags, const std::string& path);

/// The program's lines, without `granule 1`, each behind four spaces.
std::string indented(const prop::Program& program);

}  // namespace granule::cli
