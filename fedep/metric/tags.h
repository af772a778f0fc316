// Tag prediction: any subset of several tags applies to an example. Precision, recall and F1 at a
// threshold, recall among the k most probable, log loss.
//
//   TagMetrics metrics(500);
//   metrics.add(sigmoid(logits), batch.tags.offsets, batch.tags.columns);
//   metrics.micro_f1();
//
// A tag is predicted if p > threshold (strictly, as Keras has it; never if p is NaN). Counts are
// pooled over all (example, tag) cells. A ratio without denominator, such as the precision when
// nothing is predicted, is 0, as in Keras; without any example a metric does not exist: NaN.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts;  // parts.h

class TagMetrics {
 public:
  explicit TagMetrics(std::size_t tags, double threshold = 0.5, std::size_t k = 5);

  // Probabilities [n, tags]; the tags of example i are columns[offsets[i] .. offsets[i+1]),
  // ascending.
  void add(std::span<const double> probabilities, std::span<const std::uint32_t> offsets,
           std::span<const std::uint32_t> columns);
  void merge(const TagMetrics& other);
  void parts(Parts& parts);

  std::int64_t count() const { return count_; }
  double precision() const;
  double recall() const;
  double micro_f1() const;  // of the pooled counts: 2 TP / (2 TP + FP + FN)
  double macro_f1() const;  // mean over all tags of F1, 0 for a tag neither present nor predicted
  // The fraction of all tags present that are among their example's k most probable; of equals, the
  // lower tags count as more probable.
  double recall_at_k() const;
  double nll() const;  // logistic loss in nats, mean over all cells, clamped as in negative_log

 private:
  struct Counts {
    std::int64_t true_positive = 0;
    std::int64_t predicted = 0;
    std::int64_t actual = 0;
  };

  Counts pooled() const;
  void check(std::span<const double> probabilities, std::span<const std::uint32_t> offsets,
             std::span<const std::uint32_t> columns) const;
  double row_nll(std::span<const double> row, std::span<const std::uint32_t> tags) const;
  std::int64_t hits_at_k(std::span<const double> row, std::span<const std::uint32_t> tags) const;

  std::vector<Counts> counts_;  // per tag
  double threshold_;
  std::size_t k_;
  std::int64_t count_ = 0;
  std::int64_t hits_ = 0;  // tags among the k most probable
  ExactSum nll_;
};

}  // namespace fedep
