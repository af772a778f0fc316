// A model for a whole cohort on the GPU: clients' weights stacked, row c of everything is client c,
// one kernel does a layer for all of them. Functions enqueue on device_stream() and return; all of
// them may be captured into a CUDA graph, since what changes between steps is read from device
// memory.
//
//   const auto model = make_cohort_model(recipe.model, data.info(), {.clients = 20, .rows = 20});
//   model->train_step(batch, chain, losses.data());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/cuda/device/stream_address.h"
#include "fedep/cuda/network/product_precision.h"
#include "fedep/data/dataset.h"

namespace fedep {

// One minibatch of every client. All pointers are to device memory.
struct CohortBatch {
  std::size_t clients = 0;
  std::size_t rows = 0;                  // room for examples of a client: at most the model's
  const float* features = nullptr;       // [clients, rows, features], finite also beyond counts[c]
  const std::int32_t* labels = nullptr;  // [clients, rows]
  const std::int32_t* counts =
      nullptr;  // [clients]: examples in use; 0: the client sits this step out
  const StreamAddress* dropout = nullptr;  // [clients]; null: no dropout
};

// One SGD step of every chain (inference/cohort.h): with n = counts[c], g = gradient of the mean
// loss over n,
//
//   m ← μ m + g + (λ θ - η) per_example[c],   θ ← θ - lr m         on live coordinates
//
// With μ = 0 what momentum holds afterwards is not said.
struct CohortChain {
  float* theta = nullptr;         // [clients, stride]
  float* momentum = nullptr;      // [clients, stride]
  std::size_t stride = 0;         // floats between clients, at least size(), a multiple of 4
  const float* eta = nullptr;     // [clients, stride]; null: zero
  const float* lambda = nullptr;  // Λ_p: [clients, stride] if `diagonal`, else [clients]
  bool diagonal = false;
  const float* per_example = nullptr;  // [clients], 1/N_k
  float lr = 0;
  float mu = 0;
  bool loss_times_batch = false;  // g times n
  const float* rate = nullptr;    // [clients], in place of lr where it changes from step to step
};

// Where squared gradients of a batch go. So many neighbouring clients of the batch are minibatches of
// one, or draws for the same: row r of the sum gets those of the batch's clients r minibatches + 0,
// 1, …, which are all of one size, but that the last ones may be empty.
struct CohortSquares {
  float* sum = nullptr;  // [clients / minibatches, stride as theta's]
  std::size_t minibatches = 1;
  bool one_theta = false;  // they share row r of theta; else each has its own
};

// What a step does for a client depends on this, and not on how many clients the step is for.
struct CohortCapacity {
  std::size_t clients = 1;
  std::size_t rows = 1;
  ProductPrecision precision = ProductPrecision::tf32;
};

class CohortModel {
 public:
  virtual ~CohortModel() = default;

  virtual std::size_t size() const = 0;  // weights
  virtual std::size_t features() const = 0;
  virtual std::size_t outputs() const = 0;

  // loss[c] += mean loss of the client's batch. Clients without examples are left alone entirely.
  virtual void train_step(const CohortBatch& batch, const CohortChain& chain, double* loss) = 0;

  // [clients, rows, outputs]. Weights of client c begin at theta + c stride; stride 0: all share
  // one.
  virtual void logits(const CohortBatch& batch, const float* theta, std::size_t stride,
                      float* out) = 0;

  // sum[r, i] += Σ_minibatches (1/n) Σ_examples g_i² on live coordinates. Labels of the batch's
  // client c are drawn from the model, from stream `draws[c]` as model/layer/loss.h draws them, where
  // `draws` is not null; else they are the batch's. With dropout the pass that draws labels uses
  // batch.dropout and the one that differentiates `second_dropout`.
  virtual void add_squared_gradients(const CohortBatch& batch, const float* theta,
                                     std::size_t stride, const StreamAddress* draws,
                                     const StreamAddress* second_dropout,
                                     const CohortSquares& squares) = 0;
};

// A model that runs on a GPU; model/registry.h has the rest of its row.
struct CohortModelRow {
  std::string_view name;
  std::unique_ptr<CohortModel> (*make)(const ModelSettings& settings, const DatasetInfo& data,
                                       const CohortCapacity& capacity);
  bool takes_turns = false;  // clients of a step one after another, computed by torch
};

// One row each in registry.cpp.
std::span<const CohortModelRow> cohort_models();
// Throws InputError that names the models there are.
const CohortModelRow& find_cohort_model(std::string_view name);

// Throws InputError for a model that has no row, for a TorchScript module that cannot run on the GPU
// (which is tried), for sparse features and for targets other than labels.
void check_cohort_model(const ModelSettings& settings, const DatasetInfo& data);
// Throws so too, and for batches and images larger than kernels can count.
std::unique_ptr<CohortModel> make_cohort_model(const ModelSettings& settings,
                                               const DatasetInfo& data,
                                               const CohortCapacity& capacity);

}  // namespace fedep
