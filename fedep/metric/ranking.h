// The area under the ROC curve: the probability that a random positive scores above a random
// negative, ties counting one half (Mann-Whitney). Counted in integers, so exact and the same in
// any order.
//
//   Ranking ranking;
//   for (const Batch& batch : batches) ranking.add(probabilities, batch.labels);
//   ranking.auc(), ranking.auc_deviation()
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace fedep {

class Parts;  // parts.h

// Remembers every score.
class Ranking {
 public:
  // Scores of any monotone scale: probabilities, logits. Labels 0 or 1.
  void add(std::span<const double> scores, std::span<const std::int32_t> labels);
  void merge(const Ranking& other);
  void parts(Parts& parts);

  // NaN if a class is missing or a score is NaN.
  double auc() const;
  // Its standard error, without assumptions about the scores (DeLong+88). NaN also with fewer than two
  // of a class.
  double auc_deviation() const;

 private:
  bool has_nan() const;

  std::vector<std::pair<double, std::int32_t>> scored_;  // score, label
};

}  // namespace fedep
