// Runs that tests of commands make: a table of three wards, learned in a second.
//
//   const TestRun run;                          // fed_ep on a table; gone with this object
//   read_posterior(run.path());
#pragma once

#include <cmath>
#include <filesystem>
#include <string>

#include <fmt/format.h>

#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/random/stream.h"

namespace fedep {

// 300 rows: died is likelier the older, the unit says nothing.
inline std::string ward_table() {
  std::string text = "ward,died,age,sodium,unit\n";
  Stream stream({.seed = 11});
  for (int i = 0; i < 300; ++i) {
    const double age = 20 + 70 * stream.uniform();
    const bool died = stream.uniform() < 1 / (1 + std::exp(-(age - 60) / 8));
    text += fmt::format("{},{},{:.1f},{:.1f},{}\n", "ABC"[i % 3], died ? "yes" : "no", age,
                        140 + 3 * stream.normal(), stream.uniform() < 0.3 ? "CCU" : "ICU");
  }
  return text;
}

inline std::string ward_recipe(const std::string& phase) {
  return R"(
seed = 3
[data]
name = "tabular"
path = "wards.csv"
client_column = "ward"
label_column = "died"
label_positive = "yes"
categories = "unit"
[client]
epochs = 5
batch = 20
optimizer = { name = "sgd", lr = 0.1 }
[server]
clients_per_round = 3
prior = { mean = 0.0, precision = 1.0 }
optimizer = { name = "sgd", lr = 0.99 }  # windows of four rounds: six are not judged
[[phase]]
rounds = 6
)" + phase;
}

inline constexpr const char* kFedEp =
    "algorithm = \"fed_ep\"\nfactors = \"flat\"\n[phase.inference]\nname = \"laplace\"\nfamily = "
    "\"diagonal\"\n";
// Family full, by quadrature.
inline constexpr const char* kFullFedEp = "algorithm = \"fed_ep\"\nfactors = \"flat\"\n";
inline constexpr const char* kFedAvg = "algorithm = \"fed_avg\"\n";

class TestRun {
 public:
  explicit TestRun(const std::string& phase = kFedEp) {
    folder_.write("wards.csv", ward_table());
    run_recipe(parse_recipe(ward_recipe(phase)),
               {.out = path(), .data = folder_.path(), .threads = 1, .resume = false});
  }

  std::filesystem::path path() const { return folder_.path() / "run"; }
  std::filesystem::path checkpoint() const { return path() / "checkpoint-6.safetensors"; }
  const TemporaryFolder& folder() const { return folder_; }  // the data set's
  std::filesystem::path write(const std::string& name, const std::string& text) const {
    return folder_.write(name, text);
  }

 private:
  TemporaryFolder folder_;
};

// That table with two more columns, one with a single value and one with none.
inline std::string constant_table() {
  const std::string table = ward_table();
  std::string text;
  for (std::size_t begin = 0; begin < table.size();) {
    const std::size_t end = table.find('\n', begin);
    text += table.substr(begin, end - begin);
    text += begin == 0 ? ",year,\"weight, kg\"\n" : ",5,\n";
    begin = end + 1;
  }
  return text;
}

// A run on it.
inline std::filesystem::path constant_run(const TemporaryFolder& folder) {
  folder.write("wards.csv", constant_table());
  run_recipe(parse_recipe(ward_recipe(kFedEp)),
             {.out = folder.path() / "run", .data = folder.path()});
  return folder.path() / "run";
}

}  // namespace fedep
