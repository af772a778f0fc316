#include "fedep/metric/probability.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {

namespace {

constexpr double kTolerance = 1e-6;

void check_labels(std::string_view function, std::span<const std::int32_t> labels,
                  std::size_t classes) {
  for (const std::int32_t label : labels) {
    if (label < 0 || static_cast<std::size_t>(label) >= classes) {
      fail(function, "label", fmt::format("in 0..{}", classes - 1), fmt::format("{}", label));
    }
  }
}

}  // namespace

double negative_log(double probability) {
  return -std::log(std::clamp(probability, kSmallestProbability, 1.0)) + 0.0;  // 0, not −0
}

std::vector<double> softmax(std::span<const float> logits, std::size_t classes) {
  if (classes == 0 || logits.size() % classes != 0) {
    fail("softmax", "logits", fmt::format("a multiple of {} classes", classes),
         fmt::format("of {} elements", logits.size()));
  }
  std::vector<double> result(logits.size());
  for (std::size_t row = 0; row < logits.size(); row += classes) {
    const double top = *std::max_element(&logits[row], &logits[row] + classes);
    double sum = 0;
    for (std::size_t i = row; i < row + classes; ++i) {
      result[i] = std::exp(logits[i] - top);
      sum += result[i];
    }
    for (std::size_t i = row; i < row + classes; ++i) result[i] /= sum;
  }
  return result;
}

double sigmoid(double logit) {
  const double small = std::exp(-std::abs(logit));
  return logit >= 0 ? 1 / (1 + small) : small / (1 + small);
}

std::vector<double> sigmoid(std::span<const float> logits) {
  std::vector<double> result(logits.size());
  std::transform(logits.begin(), logits.end(), result.begin(),
                 [](float logit) { return sigmoid(static_cast<double>(logit)); });
  return result;
}

std::optional<std::size_t> largest(std::span<const double> row) {
  std::size_t best = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (std::isnan(row[i])) return std::nullopt;
    if (row[i] > row[best]) best = i;
  }
  return row.empty() ? std::nullopt : std::optional(best);
}

void ProbabilityMean::add(std::span<const double> probabilities) {
  check_same_size("ProbabilityMean::add", "probabilities", sum_.size(), probabilities.size());
  for (std::size_t i = 0; i < sum_.size(); ++i) sum_[i] += probabilities[i];
  ++draws_;
}

std::vector<double> ProbabilityMean::value() const {
  std::vector<double> mean = sum_;
  for (double& p : mean) p /= static_cast<double>(draws_);  // 0 / 0 is NaN
  return mean;
}

void check_probabilities(std::string_view function, std::span<const double> probabilities) {
  for (const double p : probabilities) {
    if (p < -kTolerance || p > 1 + kTolerance) {
      fail(function, "probability", "in [0, 1]", fmt::format("{}", p));
    }
  }
}

void check_classes(std::string_view function, std::span<const double> probabilities,
                   std::size_t classes, std::span<const std::int32_t> labels) {
  check_same_size(function, "probabilities", labels.size() * classes, probabilities.size());
  check_labels(function, labels, classes);
  check_probabilities(function, probabilities);
}

void check_binary(std::string_view function, std::span<const double> probabilities,
                  std::span<const std::int32_t> labels) {
  check_same_size(function, "probabilities", labels.size(), probabilities.size());
  check_labels(function, labels, 2);
  check_probabilities(function, probabilities);
}

}  // namespace fedep
