#include "fedep/metric/ranking.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/metric/parts.h"

namespace fedep {

void Ranking::add(std::span<const double> scores, std::span<const std::int32_t> labels) {
  check_same_size("Ranking::add", "scores", labels.size(), scores.size());
  for (const std::int32_t label : labels) {
    if (label != 0 && label != 1) {
      fail("Ranking::add", "label", "0 or 1", fmt::format("{}", label));
    }
  }
  for (std::size_t i = 0; i < labels.size(); ++i) scored_.emplace_back(scores[i], labels[i]);
}

void Ranking::merge(const Ranking& other) {
  const auto theirs = other.scored_;  // a copy: `other` may be this one itself
  scored_.insert(scored_.end(), theirs.begin(), theirs.end());
}

void Ranking::parts(Parts& parts) { parts.scored(scored_); }

bool Ranking::has_nan() const {
  return std::any_of(scored_.begin(), scored_.end(), [](auto s) { return std::isnan(s.first); });
}

double Ranking::auc() const {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (has_nan()) return kNan;  // sorting needs an order, which NaN has not
  auto sorted = scored_;
  std::sort(sorted.begin(), sorted.end());

  std::int64_t negatives = 0;  // below the present score
  std::int64_t positives = 0;
  std::int64_t twice_won = 0;  // 2 per pair won by the positive, 1 per tie
  for (std::size_t i = 0; i < sorted.size();) {
    const double score = sorted[i].first;
    std::int64_t tied[2] = {0, 0};
    for (; i < sorted.size() && sorted[i].first == score; ++i) ++tied[sorted[i].second];
    twice_won += tied[1] * (2 * negatives + tied[0]);
    negatives += tied[0];
    positives += tied[1];
  }
  if (negatives == 0 || positives == 0) return kNan;
  return static_cast<double>(twice_won) /
         (2.0 * static_cast<double>(negatives) * static_cast<double>(positives));
}

// Each example's part of the other class that it is on the right side of; the variance of the area is
// that of their means, class by class.
double Ranking::auc_deviation() const {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  if (has_nan()) return kNan;
  auto sorted = scored_;
  std::sort(sorted.begin(), sorted.end());
  std::int64_t total[2] = {0, 0}, below[2] = {0, 0};
  for (const auto& scored : sorted) ++total[scored.second];
  if (total[0] < 2 || total[1] < 2) return kNan;
  double sum[2] = {0, 0}, squares[2] = {0, 0};
  for (std::size_t i = 0; i < sorted.size();) {
    const double score = sorted[i].first;
    std::int64_t tied[2] = {0, 0};
    for (; i < sorted.size() && sorted[i].first == score; ++i) ++tied[sorted[i].second];
    const std::int64_t above = total[1] - below[1] - tied[1];
    const double won = double(2 * below[0] + tied[0]) / double(2 * total[0]);  // of a positive
    const double lost = double(2 * above + tied[1]) / double(2 * total[1]);    // of a negative
    for (const auto& [label, part] : {std::pair(1, won), std::pair(0, lost)}) {
      sum[label] += double(tied[label]) * part;
      squares[label] += double(tied[label]) * part * part;
    }
    below[0] += tied[0];
    below[1] += tied[1];
  }
  double variance = 0;
  for (const int label : {0, 1}) {
    const double n = double(total[label]), mean = sum[label] / n;
    variance += std::max(0.0, squares[label] / n - mean * mean) / (n - 1);
  }
  return std::sqrt(variance);
}

}  // namespace fedep
