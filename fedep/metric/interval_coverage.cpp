#include "fedep/metric/interval_coverage.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/log_gamma.h"

namespace fedep {
namespace {

// Half widths of the intervals, in deviations.
constexpr std::array<double, 3> kHalfWidths{0.674489750196082, 1.281551565544601,
                                            1.959963984540054};

// What one replicate, or one coefficient of it, adds to the averages.
struct Score {
  std::array<double, 3> covered = {};
  double square = 0;  // z²
};

Score score_of(const KnownTruth& one) {
  const double z = std::abs(one.truth - one.mean) / one.deviation;
  Score score{.square = z * z};
  for (std::size_t i = 0; i < kHalfWidths.size(); ++i) {
    score.covered[i] = z <= kHalfWidths[i] ? 1 : 0;
  }
  return score;
}

Measured average(std::span<const Score> scores, auto&& number) {
  const double n = double(scores.size());
  double sum = 0, squares = 0;
  for (const Score& score : scores) sum += number(score);
  const double mean = sum / n;
  for (const Score& score : scores) squares += (number(score) - mean) * (number(score) - mean);
  return {mean, std::sqrt(squares / (n - 1) / n)};
}

// Replicates are independent, coefficients of one are not: errors are those over replicates.
CoverageNumbers numbers_of(std::span<const Score> scores) {
  CoverageNumbers out;
  for (std::size_t i = 0; i < kIntervalLevels.size(); ++i) {
    out.covered[i] = average(scores, [i](const Score& score) { return score.covered[i]; });
  }
  const Measured square = average(scores, [](const Score& score) { return score.square; });
  const double ratio = 1 / std::sqrt(square.value);
  out.deviation_ratio = {ratio, 0.5 * ratio * square.error / square.value};
  return out;
}

void test_ranks(CoefficientCoverage& one, std::size_t replicates) {
  one.bins = rank_bins(replicates);
  if (one.bins == 0) return;
  const std::size_t width = one.ranks.size() / one.bins;
  const double expected = double(replicates) / double(one.bins);
  for (std::size_t bin = 0; bin < one.bins; ++bin) {
    double count = 0;
    for (std::size_t i = 0; i < width; ++i) count += double(one.ranks[bin * width + i]);
    one.chi_square += (count - expected) * (count - expected) / expected;
  }
  one.p_value = chi_square_tail(one.chi_square, double(one.bins - 1));
}

// The standard error that a share has at least, if truths are independent and it is right: the measured
// one is 0 where all agree.
double least_error(double level, double truths) { return std::sqrt(level * (1 - level) / truths); }

}  // namespace

std::vector<std::string> coverage_doubts(const IntervalCoverage& found,
                                         std::span<const std::string> names) {
  constexpr double kErrors = 3.5, kRankLevel = 0.001;
  std::vector<std::string> out;
  const double truths = double(found.replicates * found.coefficients.size());
  for (std::size_t i = 0; i < kIntervalLevels.size(); ++i) {
    const double level = kIntervalLevels[i];
    const auto [share, measured] = found.all.covered[i];
    const double error = std::max(measured, least_error(level, truths));
    if (std::abs(share - level) <= kErrors * error) continue;
    out.push_back(
        fmt::format("{:.0f} % intervals hold {:.1f} % of truths (standard error {:.1f}): "
                    "they are too {}",
                    100 * level, 100 * share, 100 * error,
                    share < level ? "narrow, or not where truths are" : "wide"));
  }
  const auto [ratio, error] = found.all.deviation_ratio;
  if (std::abs(ratio - 1) > kErrors * error) {
    out.push_back(fmt::format("deviations are {:.3f} of what errors are (standard error {:.3f})",
                              ratio, error));
  }
  const auto worst =
      std::ranges::min_element(found.coefficients, {}, &CoefficientCoverage::p_value);
  if (found.ranks_p_value() < kRankLevel) {
    out.push_back(fmt::format(
        "ranks of truths among draws are uneven, most of {}: p = {:.1e} over {} coefficients",
        names[std::size_t(worst - found.coefficients.begin())], found.ranks_p_value(),
        found.coefficients.size()));
  }
  return out;
}

std::size_t rank_bins(std::size_t replicates) {
  for (const std::size_t bins : {20, 10, 5, 4}) {
    if (replicates >= 5 * bins) return bins;
  }
  return 0;
}

// The regularised incomplete gamma function Q(degrees/2, x/2): its series where that converges fast, else
// its continued fraction (Lentz's method).
double chi_square_tail(double x, double degrees) {
  const double a = degrees / 2, y = x / 2;
  if (y <= 0) return 1;
  const double front = std::exp(a * std::log(y) - y - log_gamma(a));
  if (y < a + 1) {
    double term = 1 / a, sum = term;
    for (double k = a + 1; term > 1e-16 * sum; k += 1) sum += term *= y / k;
    return 1 - front * sum;
  }
  constexpr double kTiny = 1e-300;
  double b = y + 1 - a, c = 1 / kTiny, d = 1 / b, h = d;
  for (int i = 1; i < 1000; ++i) {
    const double factor = -i * (i - a);
    b += 2;
    d = 1 / std::max(factor * d + b, kTiny);
    c = std::max(b + factor / c, kTiny);
    h *= d * c;
    if (std::abs(d * c - 1) < 1e-15) break;
  }
  return front * h;
}

double IntervalCoverage::ranks_p_value() const {
  double least = 1;
  for (const CoefficientCoverage& one : coefficients) least = std::min(least, one.p_value);
  return std::min(1.0, least * double(coefficients.size()));
}

IntervalCoverage interval_coverage(std::span<const Replicate> replicates) {
  if (replicates.size() < 2) fail("interval_coverage", "replicates", "two at least", "fewer");
  const std::size_t size = replicates[0].size();
  check_positive("interval_coverage", "coefficients", double(size));
  IntervalCoverage out{.replicates = replicates.size(),
                       .coefficients = std::vector<CoefficientCoverage>(size)};
  std::vector<Score> means(replicates.size());
  for (std::size_t j = 0; j < size; ++j) {
    CoefficientCoverage& one = out.coefficients[j];
    std::vector<Score> scores;
    for (std::size_t r = 0; r < replicates.size(); ++r) {
      check_same_size("interval_coverage", "replicate", size, replicates[r].size());
      const KnownTruth& known = replicates[r][j];
      const Score& score = scores.emplace_back(score_of(known));
      for (std::size_t i = 0; i < score.covered.size(); ++i) {
        means[r].covered[i] += score.covered[i] / double(size);
      }
      means[r].square += score.square / double(size);
      ++one.ranks.at(known.rank);
    }
    static_cast<CoverageNumbers&>(one) = numbers_of(scores);
    test_ranks(one, replicates.size());
  }
  out.all = numbers_of(means);
  return out;
}

}  // namespace fedep
