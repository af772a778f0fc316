// What a recipe's intervals are worth on its own design: truths are drawn from its prior, outcomes for
// its own rows from them, and the recipe is run on each as if nobody knew the truth.
//
//   const CoverageStudy study = run_coverage_study(recipe, rows, {.replicates = 400, .threads = 2});
//   const IntervalCoverage found = interval_coverage(study.replicates);
//
// A replicate is a function of (seed, its number): neither threads nor the number of others change it.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/metric/interval_coverage.h"

namespace fedep {

struct CoverageOptions {
  std::size_t replicates = 200;
  std::size_t threads = 1;
  // Precision that truths are drawn with; none: the prior's. Another shows what a wrong prior does.
  std::optional<double> truth_precision = {};
  std::function<void(std::size_t)> done = {};  // with how many are; from one thread at a time
};

struct CoverageStudy {
  std::vector<std::string> names = {};  // of coefficients; constant columns have none
  std::vector<Replicate> replicates = {};
  std::size_t failed = 0;          // replicates without a posterior
  std::string first_failure = {};  // why
};

// Why intervals of this recipe cannot be tried, whatever its data: no proper prior, no posterior. Empty
// if they can.
std::string coverage_problem(const Recipe& recipe);

// `rows` are what the recipe trains on (sim/learning_task.h). Throws InputError for a recipe or data
// that it cannot be done with.
CoverageStudy run_coverage_study(const Recipe& recipe, const Dataset& rows,
                                 const CoverageOptions& options);

}  // namespace fedep
