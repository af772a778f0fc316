// What `fedep reproduce` would find out only after hours: files that cannot be written, places that
// are not there, recipes that cannot be played, data that are missing.
//
//   check_reproduce(plans, {.results = "result/results.jsonl", .data = data});   // throws InputError
#pragma once

#include <filesystem>
#include <span>
#include <string>

#include "app/reproduce/reproduce_plan.h"

namespace fedep {

struct ReproduceInputs {
  std::string table;
  std::filesystem::path results = {};  // lines are added to it; empty: none
  bool makes_results_folder = false;   // where it is not there
  std::filesystem::path report = {};   // the page; empty: none
  std::filesystem::path readme = {};   // gets the table (result_pages.h); empty: none
  std::filesystem::path data = {};     // folder of data sets
  std::string device = "cpu";
};

// Throws one InputError with everything that is wrong. `plans` are those still to be played.
void check_reproduce(std::span<const Plan> plans, const ReproduceInputs& inputs);

}  // namespace fedep
