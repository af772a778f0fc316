// What a run will need of a machine, before it takes it: memory, disk and time, in round numbers. What
// no machine has is refused, without being asked for.
//
//   check_data_size(recipe.data, total_memory());           // before data are made up
//   const SizePlan plan = plan_sizes(recipe, phases, *task);
//   check_sizes(plan, total_memory());
//   fmt::print("{}\n", to_text(plan));
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"
#include "fedep/sim/task.h"

namespace fedep {

struct SizePlan {
  double data_bytes = 0;     // examples
  double model_bytes = 0;    // q and what a round has beside it, on one thread
  double factor_bytes = 0;   // that clients keep in memory
  double disk_bytes = 0;     // of the run directory, while a checkpoint replaces the last
  double longest_round = 0;  // seconds on one core
  double seconds = 0;        // of all rounds and scores

  double memory_bytes() const { return data_bytes + model_bytes + factor_bytes; }
};

// Main memory and swap; nothing where the system does not say.
std::optional<double> total_memory(const std::filesystem::path& meminfo = "/proc/meminfo");

// Throws InputError, naming the settings, for made-up data that memory cannot hold.
void check_data_size(const DataSettings& settings, std::optional<double> memory);

SizePlan plan_sizes(const Recipe& recipe, std::span<const Phase> phases, const Task& task);

// Throws InputError for what memory cannot hold, and for a round that nobody lives to see.
void check_sizes(const SizePlan& plan, std::optional<double> memory);

// "about 21 MB of memory, 3.4 MB of disk and, on one core, 12 minutes"
std::string to_text(const SizePlan& plan);

// Throws InputError for a clip norm whose grid (round/grid.h) rounds all deltas away.
void check_clips(const Recipe& recipe, std::span<const Phase> phases, const Population& population);

}  // namespace fedep
