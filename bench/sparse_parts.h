// Where a step of a sparse chain spends its time: all steps of a visit, stripe by stripe as the chain
// makes them, each part timed by itself.
//
//   const SparseParts parts = time_sparse_parts(data, 10000, batches);
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

// Milliseconds of CPU per step, medians over repeats.
struct SparseParts {
  double plan;      // batches, and who touches which row when
  double fetch;     // the rows that a visit touches, from the model into stripes
  double forward;   // first touches caught up, and logits
  double loss;      // and its derivatives
  double backward;  // gradients and steps
};

// Of client 0 of a data set whose targets are tags.
SparseParts time_sparse_parts(const Dataset& data, std::size_t features,
                              const std::vector<std::vector<std::int64_t>>& batches);

}  // namespace fedep
