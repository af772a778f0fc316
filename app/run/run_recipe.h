// A recipe played into a run directory: what `fedep run` and `fedep reproduce` share.
//
//   const RunResult result = run_recipe(recipe, {.out = "run/toy", .threads = 2});
//   if (result.end == RunEnd::interrupted) …
//
// Progress goes to stderr. Every round also becomes a step of a TensorBoard event file in the run
// directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/sim/places.h"
#include "fedep/sim/task.h"
#include "fedep/store/run.h"

namespace fedep {

struct RunRecipeOptions {
  std::filesystem::path out;   // the run directory
  std::filesystem::path data;  // where data sets live
  std::size_t threads = 1;
  bool resume = false;  // the run that is in `out`
  std::string device = "cpu";
  std::string precision = "tf32";  // of products on a GPU
  // Where rounds that rows have in common are kept (store/burn_in.h), empty: nowhere; and after
  // which rounds.
  std::filesystem::path burn_in = {};
  std::vector<std::int64_t> keep_after = {};
};

RunResult run_recipe(const Recipe& recipe, const RunRecipeOptions& options);

// What a user is told of a run that was interrupted; `how` to go on with it.
std::string stop_text(const RunResult& result, std::string_view how);

// Whether a run that is over, on data whose scores have an ECE, has no evaluation.json: it was
// killed between its log's last line and that file, or somebody took the file away.
bool lacks_evaluation(const std::filesystem::path& run);
// Writes it from the last round's checkpoint, and changes nothing else: the bytes that this device
// would have written at the end of the run. Throws InputError if there is no such checkpoint.
void restore_evaluation(const Recipe& recipe, const RunRecipeOptions& options);

// Throws InputError for what would only be found out in some later round.
void check_run(const Recipe& recipe, const Task& task);
// Says on stderr what is no mistake, but will not end well at this place.
void warn_of_run(const Recipe& recipe, const Task& task, const PlaceRow& place);

// The recipe's first `rounds` rounds: later phases go, the one that the limit falls into ends with
// it.
Recipe shortened(Recipe recipe, std::int64_t rounds);
std::int64_t rounds_of(const Recipe& recipe);

// What --data names, or else $FEDEP_DATA.
std::filesystem::path data_folder(const std::string& option);

// What --device, --threads and --precision name.
const PlaceRow& place_of(const RunRecipeOptions& options);
PlaceOptions place_options(const RunRecipeOptions& options);

// Throws InputError for a --device that does not exist or that this build or machine does not have,
// and for a --precision that does not exist.
void check_device(const std::string& device, const std::string& precision);
// As run logs name it: "cpu: <model>, 2 threads", "cuda NVIDIA H200 (tf32)".
std::string device_text(const RunRecipeOptions& options);

}  // namespace fedep
