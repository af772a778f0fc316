#include "fedep/data/table/eicu.h"

#include <charconv>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

const std::vector<std::string> kApache = {
    "intubated", "vent",      "dialysis", "urine",      "wbc",        "temperature",
    "sodium",    "heartrate", "meanbp",   "hematocrit", "creatinine", "respiratoryrate",
    "albumin",   "bun",       "glucose",  "bilirubin",  "ph",         "pao2",
    "pco2",      "fio2"};

DelimitedTable read_table(const std::filesystem::path& folder, const std::string& name) {
  std::error_code error;
  const std::filesystem::path plain = folder / (name + ".csv");
  const bool is_plain = std::filesystem::exists(plain, error);
  const std::filesystem::path file = is_plain ? plain : folder / (name + ".csv.gz");
  check_data_exists("eicu", file);
  return read_delimited(file, kCsv);
}

// Ages above 89 are recorded as "> 89", to protect the oldest.
std::string age_of(const std::string& text) { return text == "> 89" ? "90" : text; }

// 1 male, 0 female, else as it is.
std::string sex_of(const std::string& text) {
  if (text == "Male") return "1";
  return text == "Female" ? "0" : text;
}

// Glasgow coma scale: eyes + motor + verbal, none if one of them is not known (-1).
std::string coma_scale(const std::string& eyes, const std::string& motor,
                       const std::string& verbal) {
  int total = 0;
  for (const std::string* part : {&eyes, &motor, &verbal}) {
    int points = 0;
    const auto [end, error] = std::from_chars(part->data(), part->data() + part->size(), points);
    if (error != std::errc() || points < 1) return "";
    total += points;
  }
  return std::to_string(total);
}

}  // namespace

DelimitedTable eicu_table(const std::filesystem::path& folder) {
  const DelimitedTable patients = read_table(folder, "patient");
  const DelimitedTable apache = read_table(folder, "apacheApsVar");

  const std::size_t apache_stay = apache.column("patientunitstayid");
  std::unordered_map<std::string, std::size_t> apache_row;
  for (std::size_t i = 0; i < apache.rows.size(); ++i) {
    if (!apache_row.emplace(apache.rows[i][apache_stay], i).second) {
      throw InputError(fmt::format("{}: stays must be there once, but {} is there twice",
                                   apache.source, shown(apache.rows[i][apache_stay])));
    }
  }
  const std::size_t eyes = apache.column("eyes");
  const std::size_t motor = apache.column("motor");
  const std::size_t verbal = apache.column("verbal");
  std::vector<std::size_t> apache_columns;
  for (const std::string& name : kApache) apache_columns.push_back(apache.column(name));

  DelimitedTable out{.source = folder.string(),
                     .columns = {"hospital", "patient", "outcome", "age", "sex", "weight", "gcs"},
                     .rows = {},
                     .bad_records = patients.bad_records + apache.bad_records};
  out.columns.insert(out.columns.end(), kApache.begin(), kApache.end());
  const std::size_t stay = patients.column("patientunitstayid");
  const std::size_t hospital = patients.column("hospitalid");
  const std::size_t patient = patients.column("uniquepid");
  const std::size_t outcome = patients.column("hospitaldischargestatus");
  const std::size_t age = patients.column("age");
  const std::size_t sex = patients.column("gender");
  const std::size_t weight = patients.column("admissionweight");
  for (const std::vector<std::string>& from : patients.rows) {
    std::vector<std::string> row{from[hospital],    from[patient],     from[outcome],
                                 age_of(from[age]), sex_of(from[sex]), from[weight]};
    const auto found = apache_row.find(from[stay]);
    if (found == apache_row.end()) {
      row.resize(out.columns.size());
    } else {
      const std::vector<std::string>& scores = apache.rows[found->second];
      row.push_back(coma_scale(scores[eyes], scores[motor], scores[verbal]));
      for (const std::size_t column : apache_columns) row.push_back(scores[column]);
    }
    out.rows.push_back(std::move(row));
  }
  return out;
}

TableSpec eicu_spec() {
  TableSpec spec{.client_column = "hospital",
                 .label_column = "outcome",
                 .positive = {"Expired"},
                 .negative = {"Alive"},
                 .numbers = {"age", "sex", "weight", "gcs"},
                 .missing = {"", "-1", "Unknown", "Other"},
                 .group_column = "patient"};
  spec.numbers.insert(spec.numbers.end(), kApache.begin(), kApache.end());
  return spec;
}

std::unique_ptr<Dataset> open_eicu(const DataSettings& settings, std::uint64_t,
                                   const std::filesystem::path& folder) {
  return tabular_dataset(eicu_table(folder / settings.path), eicu_spec(), settings);
}

}  // namespace fedep
