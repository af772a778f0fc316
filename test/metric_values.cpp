// Our metrics of predictions read from stdin, one "name value" a line, for tests that compare them
// with others' (peers_test.py):
//
//   metric_values label 7   lines "label p_0 … p_6"      metric_values binary   lines "label p"
//   metric_values tags 9    lines "t_0 … t_8 p_0 … p_8", t 0 or 1
#include <cstdint>
#include <iostream>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/metric/calibration.h"
#include "fedep/metric/classification.h"
#include "fedep/metric/ranking.h"
#include "fedep/metric/tags.h"

namespace {

using namespace fedep;

std::vector<std::vector<double>> read_rows() {
  std::vector<std::vector<double>> rows;
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream in(line);
    std::vector<double>& row = rows.emplace_back();
    for (double value = 0; in >> value;) row.push_back(value);
  }
  return rows;
}

void print(const char* name, double value) { fmt::print("{} {:.17g}\n", name, value); }

void print_calibration(const std::vector<Forecast>& forecasts) {
  UniformBins uniform;
  EqualMassBins equal_mass;
  uniform.add(forecasts);
  equal_mass.add(forecasts);
  print("ece", uniform.ece());
  print("ece_equal_mass", equal_mass.ece());
}

void print_labels(const std::vector<std::vector<double>>& rows, std::size_t classes) {
  std::vector<double> probabilities;
  std::vector<std::int32_t> labels;
  for (const auto& row : rows) {
    labels.push_back(std::int32_t(row.at(0)));
    probabilities.insert(probabilities.end(), row.begin() + 1, row.end());
  }
  ClassificationMetrics metrics(classes);
  metrics.add(probabilities, labels);
  print("accuracy", metrics.accuracy());
  print("nll", metrics.nll());
  print("brier", metrics.brier());
  print_calibration(top_class_forecasts(probabilities, classes, labels));
}

void print_binary(const std::vector<std::vector<double>>& rows) {
  std::vector<double> probabilities;
  std::vector<std::int32_t> labels;
  for (const auto& row : rows) {
    labels.push_back(std::int32_t(row.at(0)));
    probabilities.push_back(row.at(1));
  }
  BinaryMetrics metrics;
  metrics.add(probabilities, labels);
  Ranking ranking;
  ranking.add(probabilities, labels);
  print("accuracy", metrics.accuracy());
  print("nll", metrics.nll());
  print("brier", metrics.brier());
  print("auc", ranking.auc());
  print_calibration(top_class_forecasts(probabilities, labels));
}

void print_tags(const std::vector<std::vector<double>>& rows, std::size_t tags) {
  std::vector<double> probabilities;
  std::vector<std::uint32_t> offsets{0}, columns;
  for (const auto& row : rows) {
    for (std::size_t t = 0; t < tags; ++t) {
      if (row.at(t) == 1) columns.push_back(std::uint32_t(t));
    }
    offsets.push_back(std::uint32_t(columns.size()));
    probabilities.insert(probabilities.end(), row.begin() + long(tags), row.end());
  }
  TagMetrics metrics(tags);
  metrics.add(probabilities, offsets, columns);
  print("precision", metrics.precision());
  print("recall", metrics.recall());
  print("micro_f1", metrics.micro_f1());
  print("macro_f1", metrics.macro_f1());
  print("nll", metrics.nll());
}

}  // namespace

int main(int argc, char** argv) {
  const std::string kind = argc > 1 ? argv[1] : "";
  const std::size_t width = argc > 2 ? std::stoul(argv[2]) : 0;
  const auto rows = read_rows();
  if (kind == "label") print_labels(rows, width);
  if (kind == "binary") print_binary(rows);
  if (kind == "tags") print_tags(rows, width);
}
