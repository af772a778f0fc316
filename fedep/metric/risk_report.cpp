#include "fedep/metric/risk_report.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace fedep {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// "4 of 30 had the outcome": what there is too little of.
std::string shortage(const RiskReport& report) {
  const std::int64_t without = report.examples - report.events;
  if (report.events <= without) {
    return fmt::format("{} of {} had the outcome", report.events, report.examples);
  }
  return fmt::format("{} of {} did not have the outcome", without, report.examples);
}

std::vector<ReliabilityBin> bins_of(std::span<const Forecast> forecasts) {
  EqualMassBins bins(std::clamp<std::size_t>(forecasts.size() / 10, 1, 10));
  bins.add(forecasts);
  std::vector<ReliabilityBin> out = bins.bins();
  std::erase_if(out, [](const ReliabilityBin& bin) { return bin.count == 0; });
  return out;
}

void tell_auc(RiskReport& report) {
  const std::int64_t fewer = std::min(report.events, report.examples - report.events);
  if (fewer == 0) {
    report.missing.push_back("no AUC: " + shortage(report));
  } else if (fewer < 2) {
    report.missing.push_back("no standard error of the AUC: " + shortage(report));
  } else if (report.auc == 0 || report.auc == 1) {
    report.auc_deviation = kNan;  // 0 by its formula, which says nothing
    report.missing.emplace_back("no standard error of the AUC: risks separate the outcomes");
  }
}

void tell_calibration(RiskReport& report) {
  const std::int64_t fewer = std::min(report.events, report.examples - report.events);
  if (fewer < kFewestForCalibration) {
    report.calibration = {kNan, kNan, kNan, kNan};
    report.missing.push_back(fmt::format("no calibration intercept and slope: {}, fewer than {}",
                                         shortage(report), kFewestForCalibration));
  } else if (std::isnan(report.calibration.slope)) {
    const bool equal = report.bins.front().low == report.bins.back().high;
    report.missing.emplace_back(equal ? "no calibration slope: all risks are equal"
                                      : "no calibration slope: risks separate the outcomes");
  }
}

}  // namespace

void RiskScores::add(std::span<const double> probabilities, std::span<const std::int32_t> labels) {
  const std::vector<Forecast> more = positive_forecasts(probabilities, labels);
  forecasts_.insert(forecasts_.end(), more.begin(), more.end());
  ranking_.add(probabilities, labels);
}

RiskReport RiskScores::report() const {
  RiskReport out{.examples = std::int64_t(forecasts_.size()),
                 .auc = ranking_.auc(),
                 .auc_deviation = ranking_.auc_deviation(),
                 .calibration = risk_calibration(forecasts_),
                 .bins = bins_of(forecasts_)};
  bool numbers = true;
  for (const Forecast& forecast : forecasts_) {
    out.events += forecast.happened ? 1 : 0;
    numbers &= !std::isnan(forecast.confidence);
  }
  if (!numbers) {
    out.missing.emplace_back("no AUC, calibration intercept and slope: not all risks are numbers");
    return out;
  }
  tell_auc(out);
  tell_calibration(out);
  return out;
}

}  // namespace fedep
