#include "fedep/data/table/heart_disease.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/data_file.h"

namespace fedep {

DelimitedTable heart_disease_table(const std::filesystem::path& folder) {
  const DelimitedFormat format{.columns = {"age", "sex", "cp", "trestbps", "chol", "fbs", "restecg",
                                           "thalach", "exang", "oldpeak", "slope", "ca", "thal",
                                           "diagnosis"}};
  DelimitedTable all{.source = folder.string(), .columns = format.columns, .rows = {}};
  all.columns.emplace_back("hospital");
  for (const std::string hospital : {"cleveland", "hungarian", "switzerland", "va"}) {
    const std::filesystem::path file = folder / fmt::format("processed.{}.data", hospital);
    check_data_exists("heart_disease", file);
    DelimitedTable one = read_delimited(file, format);
    all.bad_records += one.bad_records;
    for (std::vector<std::string>& row : one.rows) {
      row.push_back(hospital);
      all.rows.push_back(std::move(row));
    }
  }
  return all;
}

TableSpec heart_disease_spec() {
  return {.client_column = "hospital",
          .label_column = "diagnosis",
          .positive = {"1", "2", "3", "4"},
          .negative = {"0"},
          .numbers = {"age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak", "ca"},
          .categories = {"cp", "restecg", "slope", "thal"},
          .missing = {"", "?"},
          // Nobody's blood pressure or cholesterol is 0: it was not measured (all of Switzerland's
          // cholesterol, a quarter of the VA's). As numbers they turn cholesterol's sign around.
          .missing_in = {{"trestbps", {"0"}}, {"chol", {"0"}}}};
}

std::unique_ptr<Dataset> open_heart_disease(const DataSettings& settings, std::uint64_t,
                                            const std::filesystem::path& folder) {
  return tabular_dataset(heart_disease_table(folder / settings.path), heart_disease_spec(),
                         settings);
}

}  // namespace fedep
