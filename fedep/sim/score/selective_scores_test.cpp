#include "fedep/sim/score/selective_scores.h"

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

Batch labels(std::vector<std::int32_t> values) {
  Batch out;
  out.size = values.size();
  out.labels = std::move(values);
  return out;
}

double entropy_of(std::vector<double> p) { return predictive_entropy(TargetKind::label, p); }

TEST(SelectiveScores, SortByConfidenceAndCountWrongClasses) {
  SelectiveScores scores(TargetKind::label, 3);
  scores.add_point({.mean = {0.8, 0.1, 0.1, 0.3, 0.4, 0.3}}, labels({0, 2}));
  const SelectiveReport report = scores.report();
  EXPECT_EQ(report.point.risk[4], 0.0);  // the surer half
  EXPECT_EQ(report.point.risk[9], 0.5);
  EXPECT_EQ(report.point.area, report.point.least_area);
  EXPECT_DOUBLE_EQ(report.entropy, (entropy_of({0.8, 0.1, 0.1}) + entropy_of({0.3, 0.4, 0.3})) / 2);
  EXPECT_FALSE(report.marginal);
}

TEST(SelectiveScores, OfYesOrNoAreAsSureOfANo) {
  SelectiveScores scores(TargetKind::binary, 1);
  scores.add_point({.mean = {0.1, 0.8, 0.55}}, labels({0, 1, 0}));
  const SelectiveReport report = scores.report();
  EXPECT_EQ(report.point.risk[5], 0.0);  // 0.9 of a no is surest, 0.55 is last and wrong
  EXPECT_NEAR(report.point.risk[9], 1.0 / 3, 1e-15);
}

TEST(SelectiveScores, OverDrawsHaveTwoOrders) {
  SelectiveScores scores(TargetKind::label, 2);
  scores.add_point({.mean = {0.6, 0.4, 0.7, 0.3}}, labels({0, 1}));
  // The second is more confident, wrong, and what draws disagree in.
  scores.add_marginal(
      {.mean = {0.6, 0.4, 0.7, 0.3}, .spread = {}, .entropy = {entropy_of({0.6, 0.4}), 0.1}},
      labels({0, 1}));
  const SelectiveReport report = scores.report();
  EXPECT_EQ(report.marginal->risk[4], 1.0);
  EXPECT_EQ(report.mutual_information->risk[4], 0.0);
  EXPECT_GT(*report.information, 0);
  EXPECT_LT(*report.information, *report.entropy_marginal);
}

TEST(SelectiveScores, AreOfClassesAlone) {
  EXPECT_TRUE(can_be_selective(TargetKind::label));
  EXPECT_TRUE(can_be_selective(TargetKind::binary));
  for (const TargetKind other : {TargetKind::tags, TargetKind::real, TargetKind::count}) {
    EXPECT_FALSE(can_be_selective(other));
  }
}

}  // namespace
}  // namespace fedep
