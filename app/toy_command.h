// `fedep toy`: the paper's toy experiment, as a table, as JSON, and as two pictures.
#pragma once

#include <cstdint>
#include <string>

#include "app/command.h"
#include "fedep/sim/toy/toy_experiment.h"

namespace fedep {

struct ToyOptions {
  int trials = 200;
  int steps = 100;
  std::uint64_t seed = 1;
  bool float32 = false;
  bool json = false;
  std::string figure = {};  // prefix of the pictures' files; none when empty
};

// One line of JSON, or the table beside the paper's numbers.
std::string toy_json(const ToyOptions& options, const ToyResult& result);
std::string toy_table(const ToyOptions& options, const ToyResult& result);

// Results go to stdout, the names of written files to stderr. Returns the exit code; throws
// InputError or RunError.
int toy_command(const ToyOptions& options);

// Adds the command to the program; when the user picks it, it runs during parsing and leaves its
// exit code.
void add_toy_command(Command& app, int& exit_code);

}  // namespace fedep
