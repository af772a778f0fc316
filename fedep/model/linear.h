// Linear models: logits = x W + b, with "weight" [features, outputs] before "bias" [outputs].
//
//   const auto model = make_linear({.features = 1728, .outputs = 100, .target = TargetKind::label});
//   const auto sparse = make_sparse_linear({.features = 10000, .outputs = 500, .target = TargetKind::tags});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fedep/model/model.h"

namespace fedep {

struct LinearShape {
  std::size_t features = 0;
  std::size_t outputs = 0;
  TargetKind target = TargetKind::label;
  double initial_scale = 0.0;  // of the weights; the bias starts at zero
};

// On Batch::dense.
std::unique_ptr<Model> make_linear(const LinearShape& shape);

// On Batch::sparse. As a Model it writes whole gradients, zeros included. A step that costs what
// the batch costs uses the rest: a batch touches few rows of W (and the bias); all others have
// gradient zero, so they move by a recursion known in advance and may be brought up to date when
// next touched.
//
//   model.touched_rows(batch, rows);                             // ascending
//   for (row : rows) ...                                         // bring theta[row O .. row O + O) up to date, and the bias
//   block.resize((rows.size() + 1) * outputs);
//   model.row_gradient(theta, batch, rows, block);               // [rows, O] of W, then [O] of the bias
class SparseLinear : public Model {
 public:
  // Rows of W that the batch's features name, each once.
  virtual void touched_rows(const Batch& batch, std::vector<std::uint32_t>& rows) const = 0;

  // Mean loss and its gradient on these rows, which are the batch's, and on the bias. Of theta,
  // only they are read.
  virtual double row_gradient(std::span<const float> theta, const Batch& batch,
                              std::span<const std::uint32_t> rows, std::span<float> block) = 0;

  // block += Σ_examples of squared gradients on these rows and the bias (see
  // add_squared_gradients).
  virtual void add_squared_row_gradients(std::span<const float> theta, const Batch& batch,
                                         std::span<const std::uint32_t> rows,
                                         std::span<const float> tag_targets,
                                         std::span<float> block) = 0;
};

std::unique_ptr<SparseLinear> make_sparse_linear(const LinearShape& shape);

}  // namespace fedep
