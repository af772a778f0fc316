// `fedep coverage RECIPE`: what the recipe's intervals are worth on its own design, by simulation
// (sim/coverage/coverage_study.h), as a table, JSON, and a page.
//
//   const CoverageReport report = study_coverage(recipe, {.recipe = "own_table.toml"});
//   print_text("{}", coverage_text(report));
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>

#include "app/command.h"
#include "fedep/config/recipe.h"
#include "fedep/page/coverage_page.h"

namespace fedep {

struct CoverageAsked {
  std::string recipe;          // its file, for the report
  std::filesystem::path data;  // where data sets live
  std::size_t replicates = 200;
  std::size_t threads = 1;
  std::optional<double> truth_precision = {};
};

// Throws InputError for a recipe that intervals cannot be tried of, and RunError where fewer than two
// replicates have a posterior.
CoverageReport study_coverage(const Recipe& recipe, const CoverageAsked& asked);

std::string coverage_text(const CoverageReport& report);
std::string coverage_json(const CoverageReport& report);

void add_coverage_command(Command& app, int& exit_code);

}  // namespace fedep
