// The rows of one client as a generalised linear model sees them: each enters through one number,
// f = x·θ, and its outcome is yes or no, a number, or a count. Double precision, no device.
//
//   GlmRows rows{.client = "ward-3", .outcome = GlmOutcome::yes_no, .columns = 3, .x = x, .y = y};
//   const RowDensity at = rows.likelihood(7).at(0.3);   // of row 7 where x·θ = 0.3
//
// What methods make of them and of a cavity is a GlmTilted (glm_tilted.h).
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <span>
#include <string>
#include <vector>

#include "fedep/message/log_gamma.h"

namespace fedep {

enum class GlmOutcome {
  yes_no,  // 1 with probability 1 / (1 + e^-f), otherwise 0
  number,  // normal around f with deviation `noise`
  count,   // Poisson of mean e^f
};

// log p(y | f) and its first two derivatives by f. All three outcomes are concave in f.
struct RowDensity {
  double log_density = 0;
  double slope = 0;
  double curvature = 0;  // never positive
};

// What one row says about f = x·θ; its offset is added to f here.
struct RowLikelihood {
  GlmOutcome outcome = GlmOutcome::yes_no;
  double y = 0;
  double offset = 0;
  double precision = 1;  // number: 1 / noise²
  double constant = 0;   // of log_density

  RowDensity at(double f) const;
  double log_density(double f) const;
};

struct GlmRows {
  std::string client = {};  // for errors
  GlmOutcome outcome = GlmOutcome::yes_no;
  double noise = 1;                 // number: standard deviation, known
  std::size_t columns = 0;          // d, the intercept's among them where there is one
  std::vector<double> x = {};       // [n, d], row after row; the intercept's column is 1
  std::vector<double> y = {};       // [n]: 0 or 1; a number; 0, 1, 2, …
  std::vector<double> offset = {};  // [n], added to x·θ: the log of an exposure; empty: zeros

  std::size_t size() const { return y.size(); }
  std::span<const double> row(std::size_t i) const {
    return std::span(x).subspan(i * columns, columns);
  }
  RowLikelihood likelihood(std::size_t i) const;
};

// Throws InputError naming client and row where sizes differ, a number is not finite, an outcome
// cannot be (2 of yes or no, a negative or fractional count) or the noise is not positive.
void check_glm_rows(const GlmRows& rows);

// Inline, since methods ask for it millions of times.

inline RowLikelihood GlmRows::likelihood(std::size_t i) const {
  RowLikelihood one{.outcome = outcome, .y = y[i], .offset = offset.empty() ? 0.0 : offset[i]};
  if (outcome == GlmOutcome::number) {
    one.precision = 1 / (noise * noise);
    one.constant = -std::log(noise) - 0.5 * std::log(2 * std::numbers::pi);
  } else if (outcome == GlmOutcome::count) {
    one.constant = -log_factorial(y[i]);
  }
  return one;
}

inline RowDensity RowLikelihood::at(double f) const {
  const double z = f + offset;
  if (outcome == GlmOutcome::number) {
    const double gap = y - z;
    return {constant - 0.5 * precision * gap * gap, precision * gap, -precision};
  }
  if (outcome == GlmOutcome::count) {
    const double mean = std::exp(z);
    return {constant + y * z - mean, y - mean, -mean};
  }
  const double e = std::exp(-std::abs(z));  // of the less likely side
  const double less = e / (1 + e), more = 1 / (1 + e);
  const double probability = z < 0 ? less : more;  // of yes
  const double against = z < 0 ? more : less;      // its complement, without cancellation
  return {(y - 1) * std::max(z, 0.0) + y * std::min(z, 0.0) - std::log1p(e),
          y * against - (1 - y) * probability, -less * more};
}

inline double RowLikelihood::log_density(double f) const { return at(f).log_density; }

}  // namespace fedep
