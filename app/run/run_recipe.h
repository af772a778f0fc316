// A recipe played into a run directory: what `fedep run` and `fedep reproduce` share.
//
//   const RecipeRun played = run_recipe(recipe, {.out = "run/toy", .threads = 2});
//   if (played.result.end == RunEnd::interrupted) …
//
// Progress goes to stderr. Every round also becomes a step of a TensorBoard event file in the run
// directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "app/run/run_options.h"
#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/round/run.h"
#include "fedep/sim/task.h"
#include "fedep/store/log/history.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct RecipeRun {
  RunResult result;
  History history;  // of the whole run, starts before this one included
  Verdict verdict = {};
};
RecipeRun run_recipe(const Recipe& recipe, const RunRecipeOptions& options);

// What a user is told of a run that was interrupted; `how` to go on with it.
std::string stop_text(const RunResult& result, std::string_view how);

// The run's phases. Throws InputError for what would only be found out in some later round.
std::vector<Phase> plan_run(const Recipe& recipe, const Task& task);
// Throws InputError for a recipe whose families are decided that cannot be played there.
void check_place(const PlaceRow& place, const Recipe& recipe, const Task& task);
// Equal data have equal ones; 0 where there are none.
std::uint64_t fingerprint_of(const Task& task);
// Says on stderr what is no mistake, but will not end well at this place.
void warn_of_run(const Recipe& recipe, const std::vector<Phase>& phases, const Task& task,
                 const PlaceRow& place);

// The recipe's first `rounds` rounds: later phases go, and stop.converged with the last one; the one that
// the limit falls into ends with it.
Recipe shortened(Recipe recipe, std::int64_t rounds);
std::int64_t rounds_of(const Recipe& recipe);

}  // namespace fedep
