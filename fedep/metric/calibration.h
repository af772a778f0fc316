// Calibration: does what is forecast with probability p come true in a fraction p of cases? A
// forecast is the probability of an event and whether it happened; bins of forecasts give a
// reliability diagram, and ECE = Σ_b (n_b / n) |accuracy_b − confidence_b| (Guo+23 Sec. 3.3, 15
// uniform bins).
//
//   UniformBins bins;  // or EqualMassBins, the alternative in the paper's footnote
//   for (const Batch& batch : batches) {
//     bins.add(top_class_forecasts(softmax(logits_of(batch), 100), 100, batch.labels));
//   }
//   bins.ece();
//   for (const ReliabilityBin& bin : bins.bins()) draw(bin.confidence, bin.accuracy, bin.count);
//
// Without forecasts the ECE does not exist: NaN. A NaN forecast is in no bin, and then the ECE is
// NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts;  // parts.h

inline constexpr std::size_t kCalibrationBins = 15;

struct Forecast {
  double confidence = 0;
  bool happened = false;

  bool operator==(const Forecast&) const = default;
};

// Top-1: the most probable class is the label. Probabilities [n, classes].
std::vector<Forecast> top_class_forecasts(std::span<const double> probabilities,
                                          std::size_t classes,
                                          std::span<const std::int32_t> labels);

// The same for two classes and the probability of 1: confidence max(p, 1 − p), so never below 0.5.
std::vector<Forecast> top_class_forecasts(std::span<const double> probabilities,
                                          std::span<const std::int32_t> labels);

// The label is 1, forecast with p itself: what a diagram of predicted risk against observed
// frequency shows.
std::vector<Forecast> positive_forecasts(std::span<const double> probabilities,
                                         std::span<const std::int32_t> labels);

struct ReliabilityBin {
  double low =
      0;  // uniform bins: the bin's edges; equal-mass bins: smallest and largest confidence in it,
  double high = 0;  // NaN if it is empty
  std::int64_t count = 0;
  double confidence = 0;  // mean; NaN if the bin is empty
  double accuracy = 0;    // fraction that happened; NaN if the bin is empty
};

double expected_calibration_error(std::span<const ReliabilityBin> bins);

// Bin i of B is (i/B, (i+1)/B], as in Guo+17: the upper edge belongs to it, because a saturated
// softmax gives confidence 1 and needs a bin, while a top-1 confidence is never 0. (A forecast of 0
// goes to the first bin.)
class UniformBins {
 public:
  explicit UniformBins(std::size_t bins = kCalibrationBins);

  void add(std::span<const Forecast> forecasts);
  void merge(const UniformBins& other);
  void parts(Parts& parts);

  std::vector<ReliabilityBin> bins() const;
  double ece() const;

 private:
  struct Bin {
    std::int64_t count = 0;
    std::int64_t happened = 0;
    ExactSum confidence;
  };

  std::size_t find(double confidence) const;

  std::vector<Bin> bins_;
  std::int64_t undefined_ = 0;  // NaN forecasts
};

// Forecasts sorted by confidence and cut into bins of n/B, the first n mod B bins holding one more.
// Equal confidences are never separated (which of them goes where would be chance): a cut among
// equals moves up behind them, so with many ties bins differ in size and some are empty. Remembers
// every forecast.
class EqualMassBins {
 public:
  explicit EqualMassBins(std::size_t bins = kCalibrationBins);

  void add(std::span<const Forecast> forecasts);
  void merge(const EqualMassBins& other);

  std::vector<ReliabilityBin> bins() const;
  double ece() const;

 private:
  std::size_t bins_;
  std::vector<Forecast> forecasts_;
  std::int64_t undefined_ = 0;  // NaN forecasts, not among forecasts_
};

// Confidence against accuracy at the mean of q, and marginalised over draws from it. Empty where
// there are no classes or no draws.
struct Reliability {
  std::vector<ReliabilityBin> point;
  std::vector<ReliabilityBin> marginal;
};

}  // namespace fedep
