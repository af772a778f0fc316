// One row's integrals against sums of many small steps.
#include "fedep/inference/rows/row_quadrature.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <gtest/gtest.h>

namespace fedep {
namespace {

struct Case {
  RowLikelihood row;
  double mean, variance;
};

RowLikelihood row_of(GlmOutcome outcome, double y, double offset = 0) {
  return GlmRows{
      .outcome = outcome, .noise = 0.6, .columns = 1, .x = {1}, .y = {y}, .offset = {offset}}
      .likelihood(0);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const double variance : {1e-6, 0.01, 0.3, 0.99, 1.01, 3.0, 40.0, 2500.0}) {
    for (const double mean : {-12.0, -2.0, 0.1, 1.5, 6.0}) {
      for (const double y : {0.0, 1.0}) {
        out.push_back({row_of(GlmOutcome::yes_no, y), mean, variance});
      }
      out.push_back({row_of(GlmOutcome::yes_no, 1, -3), mean, variance});
      for (const double y : {0.0, 1.0, 4.0, 300.0}) {
        out.push_back({row_of(GlmOutcome::count, y), mean, variance});
      }
      out.push_back({row_of(GlmOutcome::count, 3, 2.5), mean, variance});
      out.push_back({row_of(GlmOutcome::number, 1.7, 0.4), mean, variance});
    }
  }
  return out;
}

// Every place where the integrand is within e^-60 of its top, in steps of a 20,000th of what is left.
struct Fine {
  std::vector<double> places, logs;
  double step = 0;
};

Fine fine_steps(const Case& c) {
  const auto log_of = [&](double f) {
    return c.row.log_density(f) - 0.5 * (f - c.mean) * (f - c.mean) / c.variance;
  };
  double top = c.mean, bottom = c.mean - 200 * std::sqrt(c.variance) - c.variance - 800,
         ceiling = c.mean + 200 * std::sqrt(c.variance) + c.variance + 800;
  for (int i = 0; i < 300; ++i) {  // golden section, for a concave function
    const double a = bottom + 0.382 * (ceiling - bottom), b = bottom + 0.618 * (ceiling - bottom);
    (log_of(a) < log_of(b) ? bottom : ceiling) = log_of(a) < log_of(b) ? a : b;
  }
  top = 0.5 * (bottom + ceiling);
  const auto edge = [&](double sign) {
    double far = 1e-9;
    while (log_of(top + sign * far) > log_of(top) - 60) far *= 1.05;
    return far;
  };
  const double below = edge(-1), above = edge(1);
  Fine out;
  out.step = (below + above) / 20000;
  for (double f = top - below; f < top + above; f += out.step) {
    out.places.push_back(f);
    out.logs.push_back(log_of(f));
  }
  return out;
}

TEST(RowQuadrature, MomentsAreThoseOfManySmallSteps) {
  for (const Case& c : cases()) {
    const Fine fine = fine_steps(c);
    const double top = *std::max_element(fine.logs.begin(), fine.logs.end());
    double mass = 0, mean = 0, variance = 0;
    for (const double x : fine.logs) mass += std::exp(x - top);
    for (std::size_t i = 0; i < fine.logs.size(); ++i) {
      mean += std::exp(fine.logs[i] - top) / mass * (fine.places[i] - fine.places[0]);
    }
    for (std::size_t i = 0; i < fine.logs.size(); ++i) {
      const double gap = fine.places[i] - fine.places[0] - mean;
      variance += std::exp(fine.logs[i] - top) / mass * gap * gap;
    }
    const double log_mass =
        top + std::log(mass * fine.step) - 0.5 * std::log(2 * std::numbers::pi * c.variance);
    const RowMoments came = tilted_row(c.row, c.mean, c.variance);
    const auto what = ::testing::Message() << "outcome " << int(c.row.outcome) << " y " << c.row.y
                                           << " mean " << c.mean << " variance " << c.variance;
    EXPECT_NEAR((came.mean - fine.places[0] - mean) / std::sqrt(variance), 0, 2e-9) << what;
    EXPECT_NEAR(came.variance / variance, 1, 4e-9) << what;
    EXPECT_NEAR(came.log_mass - log_mass, 0, 1e-9 * (1 + std::abs(log_mass))) << what;
  }
}

TEST(RowQuadrature, ExpectationsAreThoseOfManySmallSteps) {
  for (const Case& c : cases()) {
    if (c.row.outcome == GlmOutcome::count && c.variance > 3) continue;  // e^f of a wide normal
    const double deviation = std::sqrt(c.variance);
    RowDensity sum;
    for (double z = -14; z < 14; z += 1e-3) {
      const double mass = 1e-3 * std::exp(-0.5 * z * z) / std::sqrt(2 * std::numbers::pi);
      const RowDensity at = c.row.at(c.mean + deviation * z);
      sum.log_density += mass * at.log_density;
      sum.slope += mass * at.slope;
      sum.curvature += mass * at.curvature;
    }
    const RowDensity came = expected_density(c.row, c.mean, c.variance);
    EXPECT_NEAR(came.log_density, sum.log_density, 1e-9 * (1 + std::abs(sum.log_density)));
    EXPECT_NEAR(came.slope, sum.slope, 1e-9 * (1 + std::abs(sum.slope)));
    EXPECT_NEAR(came.curvature, sum.curvature, 1e-9 * (1 + std::abs(sum.curvature)));
  }
}

TEST(RowQuadrature, ALikelihoodThatSaysNothingLeavesTheNormal) {
  const RowMoments came = tilted_row(row_of(GlmOutcome::yes_no, 1), 60, 0.5);
  EXPECT_NEAR(came.mean, 60, 1e-13);
  EXPECT_NEAR(came.variance, 0.5, 1e-14);
  EXPECT_NEAR(came.log_mass, 0, 1e-14);
}

TEST(RowQuadrature, AbsurdRowsStayFinite) {
  for (const double mean : {-1e4, -700.0, 700.0, 1e4}) {
    for (const double variance : {1e-12, 1.0, 1e6}) {
      for (const RowLikelihood& row : {row_of(GlmOutcome::yes_no, 0), row_of(GlmOutcome::count, 0),
                                       row_of(GlmOutcome::count, 1e6, -5)}) {
        const RowMoments came = tilted_row(row, mean, variance);
        EXPECT_TRUE(std::isfinite(came.mean) && std::isfinite(came.log_mass))
            << mean << " " << variance;
        EXPECT_GT(came.variance, 0) << mean << " " << variance << " " << row.y;
        EXPECT_LE(came.variance, variance * (1 + 1e-5));
      }
    }
  }
}

}  // namespace
}  // namespace fedep
