// What a sweep's runs come to: scores of every combination of settings, over seeds, for people and for programs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "app/sweep/grid.h"
#include "fedep/metric/metrics.h"
#include "fedep/store/json.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct SweptRun {
  std::uint64_t seed = 0;
  std::filesystem::path out;
  Metrics scores;  // the last ones
  Verdict verdict = {};
};

struct SweptCell {
  Cell cell;
  std::vector<SweptRun> runs;
};

// A line per cell, a column per score: "0.8647 ± 0.0021". Scores that some runs lack say how many seeds have them;
// runs that are not to be trusted are counted, and their cell's name has a `*`.
std::string sweep_text(std::span<const SweptCell> cells);
Json sweep_json(const std::string& recipe, std::span<const GridKey> grid,
                std::span<const SweptCell> cells);

}  // namespace fedep
