// Calibration intercept and slope: what they are of risks that are right, shifted and stretched, and where
// they do not exist.
#include "fedep/metric/risk_calibration.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

double logistic(double z) { return 1 / (1 + std::exp(-z)); }

// Outcomes of log-odds a + b z, where z is what was predicted.
std::vector<Forecast> forecasts(double a, double b, std::size_t n, std::uint64_t seed) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  std::vector<Forecast> out;
  for (std::size_t i = 0; i < n; ++i) {
    const double z = 1.5 * stream.normal() - 0.5;
    out.push_back({logistic(z), stream.uniform() < logistic(a + b * z)});
  }
  return out;
}

TEST(RiskCalibration, RisksThatAreRightHaveInterceptZeroAndSlopeOne) {
  const RiskCalibration line = risk_calibration(forecasts(0, 1, 20000, 1));
  EXPECT_NEAR(line.intercept, 0, 4 * line.intercept_deviation);
  EXPECT_NEAR(line.slope, 1, 4 * line.slope_deviation);
  EXPECT_LT(line.intercept_deviation, 0.03);
  EXPECT_LT(line.slope_deviation, 0.03);
}

TEST(RiskCalibration, TooLowRisksHaveAPositiveInterceptAndTooExtremeOnesASlopeBelowOne) {
  const RiskCalibration low = risk_calibration(forecasts(0.7, 1, 20000, 2));
  EXPECT_NEAR(low.intercept, 0.7, 4 * low.intercept_deviation);
  EXPECT_NEAR(low.slope, 1, 4 * low.slope_deviation);
  const RiskCalibration extreme = risk_calibration(forecasts(0.2, 0.5, 20000, 3));
  EXPECT_NEAR(extreme.slope, 0.5, 4 * extreme.slope_deviation);
}

// Over many data sets, estimates spread as their standard errors say.
TEST(RiskCalibration, DeviationsAreThoseOfRepeatedData) {
  double intercepts = 0, slopes = 0;
  constexpr int kRepeats = 400;
  for (int i = 0; i < kRepeats; ++i) {
    const RiskCalibration line = risk_calibration(forecasts(0, 1, 300, std::uint64_t(100 + i)));
    intercepts += std::pow(line.intercept / line.intercept_deviation, 2) / kRepeats;
    slopes += std::pow((line.slope - 1) / line.slope_deviation, 2) / kRepeats;
  }
  EXPECT_NEAR(intercepts, 1, 4 * std::sqrt(2.0 / kRepeats));
  EXPECT_NEAR(slopes, 1, 4 * std::sqrt(2.0 / kRepeats) + 0.1);  // 300 are not infinitely many
}

// Two risks, so that maximum likelihood is a table of frequencies: log-odds of 1/4 and 3/4.
TEST(RiskCalibration, OfTwoRisksIsTheLineThroughTheirFrequencies) {
  std::vector<Forecast> table;
  for (int i = 0; i < 4; ++i) {
    table.push_back({0.1, i == 0});
    table.push_back({0.9, i != 0});
  }
  const RiskCalibration line = risk_calibration(table);
  EXPECT_NEAR(line.slope, std::log(3.0) / std::log(9.0), 1e-9);
  EXPECT_NEAR(line.intercept, 0, 1e-9);
}

TEST(RiskCalibration, TheOrderDoesNotMatter) {
  std::vector<Forecast> table = forecasts(0.3, 0.8, 500, 5);
  const RiskCalibration line = risk_calibration(table);
  std::reverse(table.begin(), table.end());
  const RiskCalibration again = risk_calibration(table);
  EXPECT_EQ(line.intercept, again.intercept);
  EXPECT_EQ(line.slope, again.slope);
}

TEST(RiskCalibration, WhatDoesNotExistIsNaN) {
  const auto is_nan = [](const RiskCalibration& line) {
    return std::isnan(line.intercept) && std::isnan(line.intercept_deviation) &&
           std::isnan(line.slope) && std::isnan(line.slope_deviation);
  };
  EXPECT_TRUE(is_nan(risk_calibration({})));
  EXPECT_TRUE(is_nan(risk_calibration(std::vector<Forecast>{{0.2, true}, {0.4, true}})));
  EXPECT_TRUE(is_nan(risk_calibration(std::vector<Forecast>{{NAN, true}, {0.4, false}})));
  const std::vector<Forecast> separated{{0.2, false}, {0.3, false}, {0.6, true}, {0.7, true}};
  EXPECT_TRUE(std::isnan(risk_calibration(separated).slope));
  EXPECT_TRUE(std::isfinite(risk_calibration(separated).intercept));
  const std::vector<Forecast> equal{{0.5, false}, {0.5, true}, {0.5, true}};
  EXPECT_TRUE(std::isnan(risk_calibration(equal).slope));
  EXPECT_NEAR(risk_calibration(equal).intercept, std::log(2.0), 1e-9);
  const std::vector<Forecast> edges{{0, false}, {1, true}, {0.4, true}, {0.6, false}};
  EXPECT_TRUE(std::isfinite(risk_calibration(edges).slope));
}

}  // namespace
}  // namespace fedep
