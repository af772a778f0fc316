// What every client knows of its own intercept (sim/rows/own_intercept.h), kept in its own file when a run is over or
// stops: functions of the checkpoint and of its rows, so that a run that was killed before is resumed to the same
// bytes.
#pragma once

#include "fedep/config/recipe.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/task.h"
#include "fedep/store/run_directory.h"

namespace fedep {

// `state`: that of a checkpoint in the directory. Nothing where the model has no intercepts of clients' own.
void keep_intercepts(const Recipe& recipe, const Task& task, const RunDirectory& directory,
                     const ServerState& state);

}  // namespace fedep
