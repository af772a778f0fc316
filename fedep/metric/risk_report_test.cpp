// Reports of risks: what they are of a model that is right, of one whose log-odds are doubled, and in words
// of hospitals that are too small.
#include "fedep/metric/risk_report.h"

#include <cmath>
#include <limits>
#include <numeric>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

double logistic(double z) { return 1 / (1 + std::exp(-z)); }

// Outcomes of log-odds z; predicted are `stretch` z.
RiskReport report_of(std::size_t n, double stretch, std::uint64_t seed = 1) {
  Stream stream({.seed = seed, .purpose = Purpose::test});
  RiskScores scores;
  for (std::size_t i = 0; i < n; ++i) {
    const double z = 1.2 * stream.normal() - 1;
    const std::vector<double> risk{logistic(stretch * z)};
    const std::vector<std::int32_t> label{stream.uniform() < logistic(z) ? 1 : 0};
    scores.add(risk, label);
  }
  return scores.report();
}

RiskReport report_of(const std::vector<double>& risks, const std::vector<std::int32_t>& labels) {
  RiskScores scores;
  scores.add(risks, labels);
  return scores.report();
}

TEST(RiskReport, OfAModelThatIsRightHasInterceptZeroAndSlopeOne) {
  const RiskReport report = report_of(20000, 1);
  EXPECT_NEAR(report.calibration.intercept, 0, 4 * report.calibration.intercept_deviation);
  EXPECT_NEAR(report.calibration.slope, 1, 4 * report.calibration.slope_deviation);
  EXPECT_LT(report.calibration.slope_deviation, 0.03);
  EXPECT_THAT(report.missing, IsEmpty());
  ASSERT_EQ(report.bins.size(), 10u);
  for (const ReliabilityBin& bin : report.bins) {
    EXPECT_EQ(bin.count, 2000);
    const double error = std::sqrt(bin.confidence * (1 - bin.confidence) / 2000);
    EXPECT_NEAR(bin.accuracy, bin.confidence, 4 * error);
  }
}

TEST(RiskReport, OfDoubledLogOddsHasSlopeOneHalfAndTheSameAuc) {
  const RiskReport right = report_of(20000, 1), doubled = report_of(20000, 2);
  EXPECT_NEAR(doubled.calibration.slope, right.calibration.slope / 2, 1e-6);
  EXPECT_NEAR(doubled.calibration.slope, 0.5, 4 * doubled.calibration.slope_deviation);
  EXPECT_EQ(doubled.auc, right.auc);
  EXPECT_EQ(doubled.auc_deviation, right.auc_deviation);
}

// Estimates of the same population's AUC spread as their standard error says.
TEST(RiskReport, TheAucsErrorIsThatOfRepeatedData) {
  constexpr int kRepeats = 300;
  const double truth = report_of(200000, 1, 9).auc;
  double squares = 0;
  for (int i = 0; i < kRepeats; ++i) {
    const RiskReport report = report_of(200, 1, std::uint64_t(100 + i));
    squares += std::pow((report.auc - truth) / report.auc_deviation, 2) / kRepeats;
  }
  EXPECT_NEAR(squares, 1, 4 * std::sqrt(2.0 / kRepeats));
}

// Each positive wins, and each negative loses, so many of three pairs.
TEST(RiskReport, TheAucAndItsErrorOfAHandfulAreCounted) {
  const RiskReport report = report_of({0.1, 0.4, 0.5, 0.3, 0.6, 0.7}, {0, 0, 0, 1, 1, 1});
  EXPECT_NEAR(report.auc, 7.0 / 9, 1e-12);
  // Parts won: positives 1/3, 1, 1; negatives 1, 2/3, 2/3.
  const double positives = 4.0 / 27, negatives = 1.0 / 27;  // variances, with n - 1
  EXPECT_NEAR(report.auc_deviation, std::sqrt(positives / 3 + negatives / 3), 1e-12);
  // With ties, which count one half. Parts won: positives 1/3, 2/3, 1; negatives 1, 1/2, 1/2.
  const RiskReport tied = report_of({0.1, 0.4, 0.4, 0.3, 0.4, 0.7}, {0, 0, 0, 1, 1, 1});
  EXPECT_NEAR(tied.auc, 2.0 / 3, 1e-12);
  EXPECT_NEAR(tied.auc_deviation, std::sqrt(1.0 / 9 / 3 + 1.0 / 12 / 3), 1e-12);
}

TEST(RiskReport, WhatSmallHospitalsCannotTellIsInWords) {
  EXPECT_THAT(
      report_of({0.2, 0.3, 0.4}, {0, 0, 0}).missing,
      ElementsAre("no AUC: 0 of 3 had the outcome",
                  "no calibration intercept and slope: 0 of 3 had the outcome, fewer than 10"));
  EXPECT_THAT(
      report_of({0.2, 0.3, 0.4}, {1, 1, 1}).missing,
      ElementsAre("no AUC: 0 of 3 did not have the outcome",
                  "no calibration intercept and slope: 0 of 3 did not have the outcome, fewer "
                  "than 10"));
  const RiskReport one = report_of({0.2, 0.3, 0.4}, {0, 1, 0});
  EXPECT_EQ(one.auc, 0.5);
  EXPECT_TRUE(std::isnan(one.auc_deviation));
  EXPECT_EQ(one.missing[0], "no standard error of the AUC: 1 of 3 had the outcome");

  std::vector<double> risks(19), equal(20, 0.3);
  std::iota(risks.begin(), risks.end(), 0.0);
  for (double& risk : risks) risk = (risk + 1) / 40;
  std::vector<std::int32_t> labels(19, 0);
  std::fill(labels.begin() + 10, labels.end(), 1);  // nine
  const RiskReport nine = report_of(risks, labels);
  EXPECT_TRUE(std::isnan(nine.calibration.intercept));
  EXPECT_TRUE(std::isnan(nine.auc_deviation));  // it is 0 by its formula
  EXPECT_THAT(
      nine.missing,
      ElementsAre("no standard error of the AUC: risks separate the outcomes",
                  "no calibration intercept and slope: 9 of 19 had the outcome, fewer than 10"));
  risks.push_back(0.9);
  labels.push_back(1);
  const RiskReport ten = report_of(risks, labels);
  EXPECT_TRUE(std::isfinite(ten.calibration.intercept));
  EXPECT_THAT(ten.missing, ElementsAre("no standard error of the AUC: risks separate the outcomes",
                                       "no calibration slope: risks separate the outcomes"));
  const RiskReport alike = report_of(equal, labels);
  EXPECT_THAT(alike.missing, ElementsAre("no calibration slope: all risks are equal"));
  EXPECT_NEAR(alike.auc, 0.5, 1e-12);
}

TEST(RiskReport, BinsAreOfTenExamplesOrMoreAndNoneIsEmpty) {
  EXPECT_EQ(report_of(7, 1).bins.size(), 1u);
  EXPECT_EQ(report_of(39, 1).bins.size(), 3u);
  EXPECT_EQ(report_of(1000, 1).bins.size(), 10u);
  EXPECT_EQ(report_of(std::vector<double>(50, 0.2), std::vector<std::int32_t>(50, 0)).bins.size(),
            1u);
  EXPECT_THAT(report_of({}, {}).bins, IsEmpty());
}

TEST(RiskReport, ARiskThatIsNoNumberLeavesNothingToTell) {
  const RiskReport report = report_of({0.2, std::numeric_limits<double>::quiet_NaN()}, {0, 1});
  EXPECT_TRUE(std::isnan(report.auc));
  EXPECT_THAT(report.missing,
              ElementsAre("no AUC, calibration intercept and slope: not all risks are "
                          "numbers"));
}

}  // namespace
}  // namespace fedep
