// What the cohort's networks share: a step is forward, loss, backward, and every layer's weights
// move as soon as nobody needs their old values. A network says its two passes; make_network_cohort()
// makes a CohortModel of it.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/side_stream.h"
#include "fedep/cuda/network/cohort_model.h"
#include "fedep/cuda/network/convolution_kernels.h"
#include "fedep/model/layer/convolution.h"

namespace fedep {

gpu::Geometry geometry_of(const ConvolutionShape& shape);
// Throws InputError for maps or batches beyond what the kernels can count: `rows` examples a client.
void check_extent(const gpu::Geometry& g, std::size_t rows);

// The weights of a pass: client c's begin at theta + c stride, or at theta + (c / sharing) stride
// where neighbours share them (convolution_kernels.h).
struct CohortTheta {
  const float* theta = nullptr;
  std::size_t stride = 0;
};

// The chains' step on the tensor that begins at `offset` of every row.
gpu::Update update_of(const CohortChain& chain, std::size_t offset);

// Where a backward pass leaves gradients of weights: SGD steps, or sums of squares. Its kernels run
// beside the backward pass, each after everything that was enqueued before the call; operands must
// stay as they are until join().
class CohortSink {
 public:
  CohortSink(const CohortChain& chain, bool precise, SideStream& side)
      : chain_(&chain), precise_(precise), side_(side) {}
  CohortSink(const gpu::SquaredSum& squares, bool precise, SideStream& side)
      : squares_(squares), precise_(precise), side_(side) {}

  void weights(const gpu::Geometry& g, const gpu::CohortShape& cohort, const gpu::WeightGradient& f,
               std::size_t offset) const;
  void bias(int positions, int out, const gpu::CohortShape& cohort, const float* dy,
            std::size_t offset) const;
  void join() const { side_.main_follows(); }

 private:
  gpu::SquaredSum squares_at(std::size_t offset) const;

  const CohortChain* chain_ = nullptr;  // null: squares
  gpu::SquaredSum squares_;
  bool precise_;
  SideStream& side_;
};

// The dropout of a pass; null streams: none.
struct CohortDropout {
  const StreamAddress* streams = nullptr;
};

class CohortNetwork {
 public:
  virtual ~CohortNetwork() = default;

  virtual std::size_t size() const = 0;
  virtual std::size_t features() const = 0;
  virtual std::size_t outputs() const = 0;
  virtual bool has_dropout() const { return false; }  // else passes with other streams are the same
  // images [clients, rows, features] -> logits [clients, rows, outputs]
  virtual void forward(const gpu::CohortShape& cohort, const CohortTheta& weights,
                       const float* images, const CohortDropout& dropout, float* logits) = 0;
  // After forward() on the same images, for the derivative of its logits.
  virtual void backward(const gpu::CohortShape& cohort, const CohortTheta& weights,
                        const float* images, const float* delta, const CohortSink& sink) = 0;
};

// Zeroed, since rows that are not in use are read too.
DeviceArray<float> zeros(std::size_t size);

std::unique_ptr<CohortModel> make_network_cohort(std::unique_ptr<CohortNetwork> network,
                                                 const CohortCapacity& capacity);

}  // namespace fedep
