// Linear models: logits = x W + b (of counts also the log of the exposure), with "weight" [features, outputs] before "bias" [outputs].
//
//   const auto model = make_linear({.features = 1728, .outputs = 100, .target = TargetKind::label});
//   const auto sparse = make_sparse_linear({.features = 10000, .outputs = 500, .target = TargetKind::tags});
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/model/model.h"
#include "fedep/model/step_work.h"

namespace fedep {

struct LinearShape {
  std::size_t features = 0;
  std::size_t outputs = 0;
  TargetKind target = TargetKind::label;
  double noise = 1.0;          // of real targets
  double initial_scale = 0.0;  // of the weights; the bias starts at zero
  bool exposure = false;       // of counts: batches must have Batch::log_exposure
  // Parameters behind the weights (shared_extras.h), of one dense output.
  bool log_site_sd = false, log_noise = false;
};

// On Batch::dense.
std::unique_ptr<Model> make_linear(const LinearShape& shape);

// On Batch::sparse. As a Model it writes whole gradients, zeros included. But a batch touches few
// rows of W (and the bias); all others have gradient zero, so they move by a recursion known in
// advance (sim/sparse/sparse_chain.h), and squared gradients are wanted on the batch's rows alone:
//
//   model.touched_rows(batch, rows);                             // ascending
//   block.resize((rows.size() + 1) * outputs);
//   model.add_squared_row_gradients(theta, batch, rows, {}, block);   // [rows, O] of W, then [O] of the bias
class SparseLinear : public Model {
 public:
  // The same model of so many features.
  virtual std::unique_ptr<SparseLinear> with_features(std::size_t features) const = 0;

  // Rows of W that the batch's features name, each once.
  virtual void touched_rows(const Batch& batch, std::vector<std::uint32_t>& rows) const = 0;

  // block += Σ_examples of squared gradients on these rows, which are the batch's, and the bias (see
  // add_squared_gradients). Of theta, only they are read.
  virtual void add_squared_row_gradients(std::span<const float> theta, const Batch& batch,
                                         std::span<const std::uint32_t> rows,
                                         std::span<const float> tag_targets,
                                         std::span<float> block) = 0;
};

std::unique_ptr<SparseLinear> make_sparse_linear(const LinearShape& shape);

// What its row in registry.cpp holds.
std::unique_ptr<Model> linear_model(const ModelSettings& settings, const DatasetInfo& data);
std::optional<StepWork> linear_work(const DatasetInfo& data);
std::string linear_module_source(const ModelSettings& settings, const Layout& layout);

}  // namespace fedep
