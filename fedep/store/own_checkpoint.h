// A checkpoint to go on from must be the one that this run wrote after so many rounds: of its recipe
// and seed, with its log and its clients' factors. A file of another run, or one that somebody put
// together, is refused by name.
//
//   const OwnCheckpoint own = read_own_checkpoint(directory, 7, layout, recipe, phases);
//   check_own_sites(directory, own.checkpoint);
//   check_own_log(file, own, phases, read_log_part(directory.log(), 7));
//
// Version 1 says nothing of its log and of the bytes of its site files; the rest is checked as well.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/message/layout.h"
#include "fedep/round/phase.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/log/run_log.h"
#include "fedep/store/run_directory.h"

namespace fedep {

struct OwnCheckpoint {
  Checkpoint checkpoint;
  bool has_factors = true;  // unless it was written with checkpoint.factors = false
};

// Throws InputError, naming the file, if recipe, round, phase, slots or sites are not this run's.
OwnCheckpoint read_own_checkpoint(const RunDirectory& run, std::int64_t round, const Layout& layout,
                                  const Recipe& recipe, const std::vector<Phase>& phases);

// Throws InputError, naming the site file, for one that is not the checkpoint's.
void check_own_sites(const RunDirectory& run, const Checkpoint& checkpoint);

// Throws InputError, naming `file`, if it was written with another log, or lacks the factors of
// clients that answered.
void check_own_log(const std::filesystem::path& file, const OwnCheckpoint& own,
                   const std::vector<Phase>& phases, const LogPart& log);

// Of the server's optimizer in a phase.
std::vector<std::string> slot_names(const Phase& phase);

}  // namespace fedep
