#include "fedep/metric/classification.h"

#include <optional>

#include "fedep/message/check.h"
#include "fedep/metric/parts.h"
#include "fedep/metric/probability.h"

namespace fedep {

ClassificationMetrics::ClassificationMetrics(std::size_t classes) : classes_(classes) {
  check_positive("ClassificationMetrics", "number of classes", static_cast<double>(classes));
}

void ClassificationMetrics::add(std::span<const double> probabilities,
                                std::span<const std::int32_t> labels) {
  check_classes("ClassificationMetrics::add", probabilities, classes_, labels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = probabilities.subspan(i * classes_, classes_);
    const auto label = static_cast<std::size_t>(labels[i]);
    double squares = 0;
    for (std::size_t c = 0; c < classes_; ++c) {
      const double error = row[c] - (c == label ? 1.0 : 0.0);
      squares += error * error;
    }
    const std::optional<std::size_t> top = largest(row);
    correct_ += top == label;
    nll_.add(top ? negative_log(row[label])
                 : squares);  // a NaN anywhere in the row reaches both sums
    brier_.add(squares);
  }
  count_ += static_cast<std::int64_t>(labels.size());
}

void ClassificationMetrics::merge(const ClassificationMetrics& other) {
  check_same_size("ClassificationMetrics::merge", "classes", classes_, other.classes_);
  count_ += other.count_;
  correct_ += other.correct_;
  nll_.add(other.nll_);
  brier_.add(other.brier_);
}

void ClassificationMetrics::parts(Parts& parts) {
  parts.count(count_);
  parts.count(correct_);
  parts.sum(nll_);
  parts.sum(brier_);
}

double ClassificationMetrics::accuracy() const {
  return static_cast<double>(correct_) / static_cast<double>(count_);
}

double ClassificationMetrics::nll() const { return nll_.value() / static_cast<double>(count_); }

double ClassificationMetrics::brier() const { return brier_.value() / static_cast<double>(count_); }

void BinaryMetrics::add(std::span<const double> probabilities,
                        std::span<const std::int32_t> labels) {
  check_binary("BinaryMetrics::add", probabilities, labels);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double p = probabilities[i];
    const bool one = labels[i] == 1;
    correct_ += one ? p > 0.5 : p <= 0.5;  // NaN is wrong either way
    nll_.add(negative_log(one ? p : 1 - p));
    const double error = one ? 1 - p : p;
    brier_.add(error * error);
  }
  count_ += static_cast<std::int64_t>(labels.size());
}

void BinaryMetrics::merge(const BinaryMetrics& other) {
  count_ += other.count_;
  correct_ += other.correct_;
  nll_.add(other.nll_);
  brier_.add(other.brier_);
}

void BinaryMetrics::parts(Parts& parts) {
  parts.count(count_);
  parts.count(correct_);
  parts.sum(nll_);
  parts.sum(brier_);
}

double BinaryMetrics::accuracy() const {
  return static_cast<double>(correct_) / static_cast<double>(count_);
}

double BinaryMetrics::nll() const { return nll_.value() / static_cast<double>(count_); }

double BinaryMetrics::brier() const { return brier_.value() / static_cast<double>(count_); }

}  // namespace fedep
