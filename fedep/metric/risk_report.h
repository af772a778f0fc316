// What predicted risks of a yes-or-no outcome are worth on some examples: how well they rank them, whether
// they are too high, too low or too extreme, and in words what so few examples cannot tell.
//
//   RiskScores scores;
//   for (const Batch& batch : batches) scores.add(probabilities, batch.labels);
//   const RiskReport report = scores.report();
//   report.auc, report.auc_deviation, report.calibration.slope, report.missing
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fedep/metric/calibration.h"
#include "fedep/metric/ranking.h"
#include "fedep/metric/risk_calibration.h"

namespace fedep {

// Of examples with the outcome, and without it, below which no calibration intercept and slope are told: their
// standard errors are those of many examples.
inline constexpr std::int64_t kFewestForCalibration = 10;

// Numbers that cannot be had are NaN, and `missing` has a sentence on each of them.
struct RiskReport {
  std::int64_t examples = 0;
  std::int64_t events = 0;  // examples whose outcome is yes
  double auc = 0;
  double auc_deviation = 0;  // its standard error
  RiskCalibration calibration = {};
  // Mean risk (confidence) and frequency of yes (accuracy) of examples with similar risks: up to ten bins
  // of at least ten examples, unless there are fewer than that.
  std::vector<ReliabilityBin> bins = {};
  std::vector<std::string> missing = {};
};

// Remembers every risk.
class RiskScores {
 public:
  // Probabilities of yes; labels 0 or 1.
  void add(std::span<const double> probabilities, std::span<const std::int32_t> labels);

  RiskReport report() const;

 private:
  std::vector<Forecast> forecasts_;
  Ranking ranking_;
};

}  // namespace fedep
