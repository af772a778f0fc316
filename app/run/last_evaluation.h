// evaluation.json of a run: its last evaluation, which pages draw (app/posterior/evaluation_file.h).
#pragma once

#include <cstdint>
#include <filesystem>

#include "app/run/run_options.h"
#include "fedep/config/recipe.h"
#include "fedep/metric/calibration.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/task.h"
#include "fedep/store/json.h"

namespace fedep {

// What predicted risks are worth at the state's mean (app/posterior/risk_text.h); null unless the outcome is yes
// or no and rows are held out.
Json risk_at_mean(const Recipe& recipe, const Task& task, const ServerState& state);

// Where there are classes; other data have none.
void write_last_evaluation(const std::filesystem::path& run, std::int64_t round,
                           const Reliability& reliability, const Json& risk);

// Whether a run that is over, on data whose scores have an ECE, has no evaluation.json: it was
// killed between its log's last line and that file, or somebody took the file away.
bool lacks_evaluation(const std::filesystem::path& run);
// Writes it from the last round's checkpoint, and changes nothing else: the bytes that this device
// would have written at the end of the run. Throws InputError if there is no such checkpoint.
void restore_evaluation(const Recipe& recipe, const RunRecipeOptions& options);

}  // namespace fedep
