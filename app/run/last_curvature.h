// The last round of curvature of a run that is over, in its directory: played where it is asked for and not
// there yet. A run that was killed before it finishes it when it is resumed, to the same bytes.
#pragma once

#include <functional>

#include "fedep/config/recipe.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/task.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// `state`: after the run's last round, with its checkpoint in the directory. False if `stop` was asked and
// said so meanwhile. Throws InputError, naming it, for a file that is damaged or another run's.
bool finish_curvature(const Recipe& recipe, const Task& task, const RunDirectory& directory,
                      const ServerState& state, const std::function<bool()>& stop);

}  // namespace fedep
