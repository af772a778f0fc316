// UCI Heart Disease: four hospitals, 13 features, and whether coronary disease was found (diagnosis
// 1 to 4) or not (0). Files processed.{cleveland,hungarian,switzerland,va}.data, without headers.
//
//   const auto data = open_heart_disease({.path = "heart_disease"}, 1, data_folder);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/table/tabular.h"

namespace fedep {

// The four files as one table with a column hospital.
DelimitedTable heart_disease_table(const std::filesystem::path& folder);
TableSpec heart_disease_spec();

std::unique_ptr<Dataset> open_heart_disease(const DataSettings& settings, std::uint64_t seed,
                                            const std::filesystem::path& folder);

}  // namespace fedep
