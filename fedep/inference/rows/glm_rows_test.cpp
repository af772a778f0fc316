// What one row says about x·θ: derivatives against differences, totals against one, and rows that
// cannot be.
#include "fedep/inference/rows/glm_rows.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using ::testing::HasSubstr;

GlmRows one_row(GlmOutcome outcome, double y, double offset = 0, double noise = 1) {
  return {.client = "ward",
          .outcome = outcome,
          .noise = noise,
          .columns = 1,
          .x = {1},
          .y = {y},
          .offset = {offset}};
}

std::vector<GlmRows> every_kind() {
  return {one_row(GlmOutcome::yes_no, 1),          one_row(GlmOutcome::yes_no, 0, 0.4),
          one_row(GlmOutcome::number, -1.3, 0, 2), one_row(GlmOutcome::number, 0.5, -0.2, 0.3),
          one_row(GlmOutcome::count, 0),           one_row(GlmOutcome::count, 7, 1.1)};
}

TEST(GlmRows, DerivativesAreThoseOfTheLogDensity) {
  constexpr double kStep = 1e-5;
  for (const GlmRows& rows : every_kind()) {
    const RowLikelihood row = rows.likelihood(0);
    for (const double f : {-4.0, -0.7, 0.0, 1.2, 3.0}) {
      const RowDensity at = row.at(f), above = row.at(f + kStep), below = row.at(f - kStep);
      const double size = 1 + std::abs(at.log_density) + std::abs(at.curvature);
      EXPECT_NEAR(at.slope, (above.log_density - below.log_density) / (2 * kStep), 1e-8 * size);
      EXPECT_NEAR(at.curvature, (above.slope - below.slope) / (2 * kStep), 1e-8 * size);
      EXPECT_LT(at.curvature, 0);
    }
  }
}

TEST(GlmRows, DensitiesOverAllOutcomesAddToOne) {
  for (const double f : {-3.0, 0.2, 2.5}) {
    double yes_or_no = 0, counts = 0, numbers = 0;
    for (const double y : {0.0, 1.0}) {
      yes_or_no += std::exp(one_row(GlmOutcome::yes_no, y, 0.3).likelihood(0).log_density(f));
    }
    for (double y = 0; y < 200; ++y) {
      counts += std::exp(one_row(GlmOutcome::count, y, 0.3).likelihood(0).log_density(f));
    }
    for (double y = -40; y < 40; y += 0.1) {
      numbers +=
          0.1 * std::exp(one_row(GlmOutcome::number, y, 0.3, 0.7).likelihood(0).log_density(f));
    }
    EXPECT_NEAR(yes_or_no, 1, 1e-14);
    EXPECT_NEAR(counts, 1, 1e-12);
    EXPECT_NEAR(numbers, 1, 1e-12);
  }
}

TEST(GlmRows, AnOffsetMovesTheLinearPredictor) {
  for (const GlmRows& rows : every_kind()) {
    GlmRows without = rows;
    without.offset = {};
    const RowDensity moved = rows.likelihood(0).at(0.5);
    const RowDensity direct = without.likelihood(0).at(0.5 + rows.offset[0]);
    EXPECT_EQ(moved.log_density, direct.log_density);
    EXPECT_EQ(moved.slope, direct.slope);
    EXPECT_EQ(moved.curvature, direct.curvature);
  }
}

TEST(GlmRows, FarOutNothingOverflowsAndNoDigitIsLost) {
  const RowDensity wrong = one_row(GlmOutcome::yes_no, 0).likelihood(0).at(800);
  EXPECT_EQ(wrong.log_density, -800);
  EXPECT_EQ(wrong.slope, -1);
  const RowDensity right = one_row(GlmOutcome::yes_no, 1).likelihood(0).at(50);
  EXPECT_NEAR(right.slope / std::exp(-50.0), 1, 1e-12);
  EXPECT_NEAR(right.log_density / -std::exp(-50.0), 1, 1e-12);
  EXPECT_NEAR(right.curvature / -std::exp(-50.0), 1, 1e-12);
}

std::string complaint(const GlmRows& rows) {
  try {
    check_glm_rows(rows);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(GlmRows, WhatCannotBeIsRefusedWithClientAndRow) {
  GlmRows rows{.client = "ward", .columns = 2, .x = {1, 2, 3, 4, 5, 6}, .y = {0, 1, 1}};
  EXPECT_EQ(complaint(rows), "none");
  const auto with = [&](auto change) {
    GlmRows changed = rows;
    change(changed);
    return complaint(changed);
  };
  EXPECT_EQ(with([](GlmRows& r) { r.y[2] = 2; }),
            "rows of client ward: the outcome of row 2 must be 0 or 1, but is 2");
  EXPECT_THAT(with([](GlmRows& r) { r.outcome = GlmOutcome::count, r.y[1] = -1; }),
              HasSubstr("row 1 must be a whole number, zero or more, but is -1"));
  EXPECT_THAT(with([](GlmRows& r) { r.outcome = GlmOutcome::count, r.y[0] = 1.5; }),
              HasSubstr("row 0 must be a whole number"));
  EXPECT_THAT(with([](GlmRows& r) { r.x[3] = std::numeric_limits<double>::infinity(); }),
              HasSubstr("row 1 must be finite, but is inf"));
  EXPECT_THAT(with([](GlmRows& r) { r.outcome = GlmOutcome::number, r.y[2] = NAN; }),
              HasSubstr("the outcome of row 2 must be finite"));
  EXPECT_THAT(with([](GlmRows& r) { r.outcome = GlmOutcome::number, r.noise = 0; }),
              HasSubstr("noise must be positive"));
  EXPECT_THAT(with([](GlmRows& r) { r.offset = {0}; }), HasSubstr("offset must be of 3 elements"));
  EXPECT_THAT(with([](GlmRows& r) { r.offset = {0, 0, NAN}; }), HasSubstr("the offset of row 2"));
  EXPECT_THAT(with([](GlmRows& r) { r.x.pop_back(); }), HasSubstr("x must be of 6 elements"));
}

}  // namespace
}  // namespace fedep
