// Some examples of one client, as a model takes them: features dense or sparse, targets of one
// kind.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fedep {

// What a model predicts, which decides its loss and what labels are drawn from it.
enum class TargetKind {
  label,   // one of several classes: softmax cross-entropy
  binary,  // 0 or 1: one logit, logistic loss
  tags,    // any subset of several tags: one logistic loss per tag, averaged over tags
  real,    // a number with Gaussian noise: squared error over twice the noise's variance
  count,   // 0, 1, 2, …: Poisson, whose mean is e^output times an exposure
};

// Rows of different lengths, one after another: row i is [offsets[i], offsets[i+1]).
struct SparseRows {
  std::vector<std::uint32_t> offsets{0};
  std::vector<std::uint32_t> columns;  // ascending within a row, none twice
  std::vector<float> values;           // empty: all ones (tags)

  std::size_t rows() const { return offsets.size() - 1; }
  bool operator==(const SparseRows&) const = default;
};

struct Batch {
  std::size_t size = 0;
  std::vector<float> dense;          // [size, features], images as [height, width, channels]
  SparseRows sparse;                 // instead of dense, if the data set is sparse
  std::vector<std::int32_t> labels;  // label and binary: [size]
  SparseRows tags;                   // tags: columns are the tags that apply
  std::vector<float> reals;          // real and count: [size]
  std::vector<float> log_exposure;   // count: [size], added to outputs; empty: exposures of 1

  bool operator==(const Batch&) const = default;
};

}  // namespace fedep
