// What the page may show of a linear model's coefficients: the same that `fedep coefficients` tells.
#pragma once

#include <filesystem>
#include <optional>

#include "fedep/config/recipe.h"
#include "fedep/page/report/coefficient_report.h"

namespace fedep {

// Of a run's latest checkpoint, by the names that the run wrote down beside it. Nothing where the model is not linear,
// its data are no table, or no checkpoint is there yet. Throws InputError for files that cannot be read.
std::optional<CoefficientReport> told_coefficients(const std::filesystem::path& run,
                                                   const Recipe& recipe);

}  // namespace fedep
