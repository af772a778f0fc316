// Accuracy, negative log likelihood and Brier score. Batches come in one at a time; the result is
// the same bits however the examples were ordered, cut into batches or spread over accumulators
// that are merged.
//
//   ClassificationMetrics metrics(100);
//   for (const Batch& batch : batches) metrics.add(softmax(logits_of(batch), 100), batch.labels);
//   metrics.accuracy();
//
// Without examples a metric does not exist: NaN. An example with a NaN probability is wrong, and
// then NLL and Brier score do not exist. Accumulators are values: copy them, merge them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts;  // parts.h

// One of several classes, by probabilities [n, classes].
class ClassificationMetrics {
 public:
  explicit ClassificationMetrics(std::size_t classes);

  void add(std::span<const double> probabilities, std::span<const std::int32_t> labels);
  void merge(const ClassificationMetrics& other);
  void parts(Parts& parts);

  std::int64_t count() const { return count_; }
  std::int64_t correct() const { return correct_; }
  double accuracy() const;  // the label is the first of the most probable classes
  double nll() const;       // mean of −log p(label), in nats, clamped as in negative_log
  double brier() const;     // mean of Σ_c (p_c − [c = label])², in [0, 2]

 private:
  std::size_t classes_;
  std::int64_t count_ = 0;
  std::int64_t correct_ = 0;
  ExactSum nll_;
  ExactSum brier_;
};

// Label 0 or 1, by the probability of 1, [n].
class BinaryMetrics {
 public:
  void add(std::span<const double> probabilities, std::span<const std::int32_t> labels);
  void merge(const BinaryMetrics& other);
  void parts(Parts& parts);

  std::int64_t count() const { return count_; }
  std::int64_t correct() const { return correct_; }
  double accuracy() const;  // 1 is predicted if p > 0.5, so that a tie goes to class 0, as above
  double nll() const;
  double brier()
      const;  // mean of (p − label)², in [0, 1]: half of what the two classes above would give

 private:
  std::int64_t count_ = 0;
  std::int64_t correct_ = 0;
  ExactSum nll_;
  ExactSum brier_;
};

}  // namespace fedep
