// What a posterior's intervals are worth where the truth is known: how often they hold it, how large
// they are against the errors made, and where it falls among draws (simulation-based calibration,
// Talts+18). Truths are drawn from the prior, replicate by replicate, and so the answer is known: a 95 %
// interval holds 95 % of them, errors are as large as deviations say, and ranks are uniform.
//
//   const IntervalCoverage found = interval_coverage(replicates);
//   found.all.covered[2].value              // share of truths in 95 % intervals, and .error of it
//   found.all.deviation_ratio.value         // below 1: intervals are too narrow
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fedep {

inline constexpr std::array<double, 3> kIntervalLevels{0.5, 0.8, 0.95};
// A truth's rank among so many draws is one of a hundred.
inline constexpr std::size_t kRankDraws = 99;

// One coefficient's posterior in one replicate.
struct KnownTruth {
  double truth = 0;
  double mean = 0;
  double deviation = 1;
  std::size_t rank = 0;  // how many of kRankDraws draws lie below the truth
};

// One run: all coefficients, in the same order in every replicate.
using Replicate = std::vector<KnownTruth>;

struct Measured {
  double value = 0;
  double error = 0;  // standard error over replicates
};

struct CoverageNumbers {
  std::array<Measured, 3> covered = {};  // at kIntervalLevels
  // 1/√(mean of z²), z = (truth - mean)/deviation: deviations over the errors' size.
  Measured deviation_ratio = {};
};

struct CoefficientCoverage : CoverageNumbers {
  std::array<std::size_t, kRankDraws + 1> ranks = {};  // replicates with each rank
  std::size_t bins = 0;   // that ranks are counted in for the test; 0: too few replicates
  double chi_square = 0;  // of bins - 1 degrees of freedom
  double p_value = 1;     // of ranks at least as uneven, if they are uniform
};

struct IntervalCoverage {
  std::size_t replicates = 0;
  CoverageNumbers all = {};  // averaged over coefficients
  std::vector<CoefficientCoverage> coefficients = {};

  // Smallest p times the number of coefficients, at most 1 (Bonferroni).
  double ranks_p_value() const;
};

// Throws InputError where there are fewer than two replicates, or their lengths differ.
IntervalCoverage interval_coverage(std::span<const Replicate> replicates);

// What speaks against the intervals, a sentence each; none where nothing does: a share that is off by
// more than 3.5 standard errors, deviations that are, ranks that are uneven at 0.001 after Bonferroni.
std::vector<std::string> coverage_doubts(const IntervalCoverage& found,
                                         std::span<const std::string> names);

// How many bins so many ranks are counted in: 20, or fewer, so that each expects at least five; 0 where
// four would not.
std::size_t rank_bins(std::size_t replicates);

// P(X >= x) of a χ² with so many degrees of freedom.
double chi_square_tail(double x, double degrees);

}  // namespace fedep
