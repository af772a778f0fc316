// A model: weights and a batch in, losses, gradients and predictions out. Weights are one flat
// vector; layout() says which tensor lies where. A model owns scratch memory, so it is used by one
// thread at a time; each worker makes its own.
//
// Built-in models are differentiated by hand over BLAS, one client's batch at a time.
//
//   const std::unique_ptr<Model> model = make_model(recipe.model, data.info());
//   std::vector<float> theta(model->size()), gradient(model->size());
//   model->initialise(seed, theta);
//   const double loss = model->loss_gradient(theta, batch, {.dropout = &address}, gradient);
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/message/layout.h"
#include "fedep/model/likelihood.h"
#include "fedep/random/stream.h"

namespace fedep {

// How a forward pass behaves in training.
struct Mode {
  const Address* dropout = nullptr;  // where dropout masks are drawn from; null: no dropout
  // What loss_gradient() leaves of the values it finds: gradient = keep gradient + ∇. With 0 they
  // are not read; with 0.9 the buffer is a momentum, updated without a pass over the weights of its
  // own.
  float keep = 0.0f;
};

class Model {
 public:
  virtual ~Model() = default;

  virtual const Layout& layout() const = 0;
  std::size_t size() const { return size_of(layout()); }
  virtual std::size_t outputs() const = 0;
  virtual Likelihood likelihood() const = 0;
  TargetKind target() const { return likelihood().target; }

  // Initial weights, addressed by the seed alone.
  virtual void initialise(std::uint64_t seed, std::span<float> theta) const = 0;

  // Coordinates that some example can give a gradient; ascending and disjoint. The others (taps of
  // a convolution that only ever see padding) have derivative zero for all data and weights.
  virtual std::vector<Range> live() const { return {{0, size()}}; }

  // Mean loss over the batch; its gradient is written to the live coordinates of `gradient`, all
  // others are left alone.
  virtual double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                               std::span<float> gradient) = 0;

  // Outputs before softmax or sigmoid, [batch.size, outputs].
  virtual void logits(std::span<const float> theta, const Batch& batch, const Mode& mode,
                      std::span<float> out) = 0;

  // sum[i] += Σ_examples g_i², g the gradient of one example's loss, on live coordinates. Never
  // holds [examples, weights]. For tags the example's loss is the mean over tags; `tag_targets`
  // ([batch.size, outputs], real-valued) replaces the batch's tags if it is not empty.
  virtual void add_squared_gradients(std::span<const float> theta, const Batch& batch,
                                     const Mode& mode, std::span<const float> tag_targets,
                                     std::span<float> sum) = 0;
};

}  // namespace fedep
