#include "fedep/metric/calibration.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/metric/parts.h"
#include "fedep/metric/probability.h"

namespace fedep {

namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

void check_confidences(std::string_view function, std::span<const Forecast> forecasts) {
  for (const Forecast& forecast : forecasts) {
    check_probabilities(function, std::span(&forecast.confidence, 1));
  }
}

}  // namespace

std::vector<Forecast> top_class_forecasts(std::span<const double> probabilities,
                                          std::size_t classes,
                                          std::span<const std::int32_t> labels) {
  check_classes("top_class_forecasts", probabilities, classes, labels);
  std::vector<Forecast> result(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = probabilities.subspan(i * classes, classes);
    const auto top = largest(row);
    result[i] = top ? Forecast{row[*top], *top == static_cast<std::size_t>(labels[i])}
                    : Forecast{kNan, false};
  }
  return result;
}

std::vector<Forecast> top_class_forecasts(std::span<const double> probabilities,
                                          std::span<const std::int32_t> labels) {
  check_binary("top_class_forecasts", probabilities, labels);
  std::vector<Forecast> result(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const double p = probabilities[i];
    result[i] = p > 0.5 ? Forecast{p, labels[i] == 1} : Forecast{1 - p, labels[i] == 0};
  }
  return result;
}

std::vector<Forecast> positive_forecasts(std::span<const double> probabilities,
                                         std::span<const std::int32_t> labels) {
  check_binary("positive_forecasts", probabilities, labels);
  std::vector<Forecast> result(labels.size());
  for (std::size_t i = 0; i < labels.size(); ++i) result[i] = {probabilities[i], labels[i] == 1};
  return result;
}

double expected_calibration_error(std::span<const ReliabilityBin> bins) {
  std::int64_t count = 0;
  double sum = 0;
  for (const ReliabilityBin& bin : bins) {
    if (bin.count == 0) continue;
    sum += static_cast<double>(bin.count) * std::abs(bin.accuracy - bin.confidence);
    count += bin.count;
  }
  return sum / static_cast<double>(count);
}

UniformBins::UniformBins(std::size_t bins) : bins_(bins) {
  check_positive("UniformBins", "number of bins", static_cast<double>(bins));
}

std::size_t UniformBins::find(double confidence) const {
  const auto bins = static_cast<double>(bins_.size());
  const double guess = std::clamp(std::ceil(confidence * bins) - 1, 0.0, bins - 1);
  auto i = static_cast<std::size_t>(guess);
  // The product above is rounded, so near an edge the guess may be one off: compare with the edges
  // themselves.
  if (i > 0 && confidence <= static_cast<double>(i) / bins) --i;
  if (i + 1 < bins_.size() && confidence > static_cast<double>(i + 1) / bins) ++i;
  return i;
}

void UniformBins::add(std::span<const Forecast> forecasts) {
  check_confidences("UniformBins::add", forecasts);
  for (const auto& [confidence, happened] : forecasts) {
    if (std::isnan(confidence)) {
      ++undefined_;
      continue;
    }
    Bin& bin = bins_[find(confidence)];
    ++bin.count;
    bin.happened += happened;
    bin.confidence.add(confidence);
  }
}

void UniformBins::merge(const UniformBins& other) {
  check_same_size("UniformBins::merge", "bins", bins_.size(), other.bins_.size());
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    bins_[i].count += other.bins_[i].count;
    bins_[i].happened += other.bins_[i].happened;
    bins_[i].confidence.add(other.bins_[i].confidence);
  }
  undefined_ += other.undefined_;
}

void UniformBins::parts(Parts& parts) {
  for (Bin& bin : bins_) {
    parts.count(bin.count);
    parts.count(bin.happened);
    parts.sum(bin.confidence);
  }
  parts.count(undefined_);
}

std::vector<ReliabilityBin> UniformBins::bins() const {
  std::vector<ReliabilityBin> result(bins_.size());
  for (std::size_t i = 0; i < bins_.size(); ++i) {
    const Bin& bin = bins_[i];
    const auto count = static_cast<double>(bin.count);
    result[i] = {.low = static_cast<double>(i) / static_cast<double>(bins_.size()),
                 .high = static_cast<double>(i + 1) / static_cast<double>(bins_.size()),
                 .count = bin.count,
                 .confidence = bin.confidence.value() / count,
                 .accuracy = static_cast<double>(bin.happened) / count};
  }
  return result;
}

double UniformBins::ece() const {
  return undefined_ > 0 ? kNan : expected_calibration_error(bins());
}

EqualMassBins::EqualMassBins(std::size_t bins) : bins_(bins) {
  check_positive("EqualMassBins", "number of bins", static_cast<double>(bins));
}

void EqualMassBins::add(std::span<const Forecast> forecasts) {
  check_confidences("EqualMassBins::add", forecasts);
  for (const Forecast& forecast : forecasts) {
    if (std::isnan(forecast.confidence)) {
      ++undefined_;
    } else {
      forecasts_.push_back(forecast);
    }
  }
}

void EqualMassBins::merge(const EqualMassBins& other) {
  check_same_size("EqualMassBins::merge", "bins", bins_, other.bins_);
  const std::vector<Forecast> theirs = other.forecasts_;  // a copy: `other` may be this one itself
  forecasts_.insert(forecasts_.end(), theirs.begin(), theirs.end());
  undefined_ += other.undefined_;
}

std::vector<ReliabilityBin> EqualMassBins::bins() const {
  std::vector<Forecast> sorted = forecasts_;
  std::sort(sorted.begin(), sorted.end(),
            [](const Forecast& a, const Forecast& b) { return a.confidence < b.confidence; });

  std::vector<ReliabilityBin> result(bins_);
  std::size_t begin = 0;
  for (std::size_t i = 0; i < bins_; ++i) {
    const std::size_t even = (i + 1) * (sorted.size() / bins_);
    std::size_t end = std::max(begin, even + std::min(i + 1, sorted.size() % bins_));
    while (end > begin && end < sorted.size() &&
           sorted[end].confidence == sorted[end - 1].confidence) {
      ++end;
    }
    ExactSum confidence;
    std::int64_t happened = 0;
    for (std::size_t j = begin; j < end; ++j) {
      confidence.add(sorted[j].confidence);
      happened += sorted[j].happened;
    }
    const auto count = static_cast<double>(end - begin);
    result[i] = {.low = begin < end ? sorted[begin].confidence : kNan,
                 .high = begin < end ? sorted[end - 1].confidence : kNan,
                 .count = static_cast<std::int64_t>(end - begin),
                 .confidence = confidence.value() / count,
                 .accuracy = static_cast<double>(happened) / count};
    begin = end;
  }
  return result;
}

double EqualMassBins::ece() const {
  return undefined_ > 0 ? kNan : expected_calibration_error(bins());
}

}  // namespace fedep
