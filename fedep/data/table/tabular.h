// Tables with a client column, CSV or TSV: hospitals' records, one row an example. Columns are
// scaled by sums that clients report (table_scale.h), from training rows alone; a fixed part of
// every client's rows is held out (holdout.h), or those that a column says.
//
//   TableSpec spec{.client_column = "hospital", .label_column = "died", .positive = {"yes"},
//                  .numbers = {"age", "sodium"}, .categories = {"unit"}};
//   const auto data = tabular_dataset(read_delimited("stays.csv", kCsv), spec, settings);
//
// A record without client or label, with a label that may not be, or with a number that is none, is
// left out and counted (so is one whose test column says neither train nor test); a count that is
// negative or fractional and an exposure that is not positive are refused with their line. Values are compared as numbers where they are: a category 4.0 is the
// category 4.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/table/delimited.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

std::unique_ptr<Dataset> tabular_dataset(const DelimitedTable& table, const TableSpec& spec,
                                         const DataSettings& settings);

// Reads folder / settings.path, which the recipe describes (table_spec.h).
std::unique_ptr<Dataset> open_tabular(const DataSettings& settings, std::uint64_t seed,
                                      const std::filesystem::path& folder);

}  // namespace fedep
