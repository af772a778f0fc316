// What `fedep run` and `fedep reproduce` are told about a run beside its recipe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/command.h"
#include "fedep/sim/place/places.h"

namespace fedep {

class LiveReport;

struct RunRecipeOptions {
  std::filesystem::path out = {};   // the run directory
  std::filesystem::path data = {};  // where data sets live
  std::size_t threads = 1;
  bool resume = false;  // the run that is in `out`
  std::string device = "cpu";
  std::string precision = "tf32";      // of products on a GPU
  Ranks* ranks = nullptr;              // that play the run together
  bool mixed_cpus = false;             // even where they compute differently
  std::filesystem::path scratch = {};  // for what need not outlive this process; empty: nowhere
  // Where rounds that rows have in common are kept (store/burn_in.h), empty: nowhere; and after
  // which rounds.
  std::filesystem::path burn_in = {};
  std::vector<std::int64_t> keep_after = {};
  LiveReport* live = nullptr;  // is told of every round
};

void add_scratch_option(Command& command, std::string& scratch);
void add_mixed_cpus_option(Command& command, bool& mixed_cpus);

// What --data names, or else $FEDEP_DATA.
std::filesystem::path data_folder(const std::string& option);

// What --device, --threads and --precision name.
const PlaceRow& place_of(const RunRecipeOptions& options);
PlaceOptions place_options(const RunRecipeOptions& options);

// Throws InputError for a --device that does not exist or that this build or machine does not have,
// and for a --precision that does not exist. With `over_ranks` this process takes its GPU.
void check_device(const std::string& device, const std::string& precision, bool over_ranks = false);
// As run logs name it: "cpu: <model>, 2 threads", "cuda NVIDIA H200 (tf32)".
std::string device_text(const RunRecipeOptions& options);
// The same, however many ranks there are.
std::string one_device_text(const RunRecipeOptions& options);

}  // namespace fedep
