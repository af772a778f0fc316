// Whether predicted risks are too high, too low or too extreme, for outcomes that are yes or no. With z the
// log-odds of a predicted risk,
//
//   calibration intercept   a of  log-odds = a + z      0: as many events as predicted; above: more
//   calibration slope       b of  log-odds = a + b z    1: as spread as they should be; below: too extreme
//
// both by maximum likelihood (Cox 1958), with standard errors.
//
//   const RiskCalibration line = risk_calibration(positive_forecasts(probabilities, batch.labels));
//   EqualMassBins bins(10);                       // calibration.h: risk against frequency, in tenths
//   bins.add(positive_forecasts(probabilities, batch.labels));
#pragma once

#include <span>

#include "fedep/metric/calibration.h"

namespace fedep {

// All of them NaN without both outcomes or with a NaN forecast; the slope also where all risks are equal
// or where risks separate the outcomes, which no slope is steep enough for.
struct RiskCalibration {
  double intercept = 0;  // with the slope held at 1
  double intercept_deviation = 0;
  double slope = 0;
  double slope_deviation = 0;
};

// The same in any order of the forecasts. Risks of 0 and 1 count as 1e-12 from there.
RiskCalibration risk_calibration(std::span<const Forecast> forecasts);

}  // namespace fedep
