// eICU Collaborative Research Database (demo): intensive-care stays in 186 hospitals, and whether
// the patient left the hospital alive. From the tables patient (outcome, age, sex, weight) and
// apacheApsVar (what the APACHE score is made of), as .csv or .csv.gz.
//
//   const auto data = open_eicu({.name = "eicu", .path = "eicu_demo"}, 1, data_folder);
//
// A stay without a recorded outcome is left out and counted. A stay without APACHE variables stays,
// with all of them missing. Stays of one patient are held out together.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/table/tabular.h"

namespace fedep {

// The two tables joined by stay.
DelimitedTable eicu_table(const std::filesystem::path& folder);
TableSpec eicu_spec();

std::unique_ptr<Dataset> open_eicu(const DataSettings& settings, std::uint64_t seed,
                                   const std::filesystem::path& folder);

}  // namespace fedep
