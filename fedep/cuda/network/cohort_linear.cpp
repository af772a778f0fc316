#include "fedep/cuda/network/cohort_linear.h"

#include "fedep/cuda/network/cohort_network.h"

namespace fedep {
namespace {

// logits = x W + b, weights before bias (model/linear.h).
class CohortLinear final : public CohortNetwork {
 public:
  CohortLinear(std::size_t features, std::size_t outputs, bool precise)
      : features_(features),
        outputs_(outputs),
        precise_(precise),
        dense_(gpu::make_dense(int(features), int(outputs))) {}

  std::size_t size() const override { return (features_ + 1) * outputs_; }
  std::size_t features() const override { return features_; }
  std::size_t outputs() const override { return outputs_; }

  void forward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float* images,
               const CohortDropout&, float* logits) override {
    gpu::Forward f;
    f.x = images;
    f.weights = weights.theta;
    f.stride = weights.stride;
    f.bias = weights.theta + features_ * outputs_;
    f.y = logits;
    gpu::convolve(dense_, cohort, f, precise_, device_stream());
  }

  void backward(const gpu::CohortShape& cohort, const CohortTheta&, const float* images,
                const float* delta, const CohortSink& sink) override {
    gpu::WeightGradient f;
    f.x = images;
    f.dy = delta;
    sink.weights(dense_, cohort, f, 0);
    sink.bias(1, int(outputs_), cohort, delta, features_ * outputs_);
  }

 private:
  std::size_t features_, outputs_;
  bool precise_;
  gpu::Geometry dense_;
};

}  // namespace

std::unique_ptr<CohortModel> make_cohort_linear(const ModelSettings&, const DatasetInfo& data,
                                                const CohortCapacity& capacity) {
  check_extent(gpu::make_dense(int(data.feature_count()), int(data.outputs)), capacity.rows);
  return make_network_cohort(
      std::make_unique<CohortLinear>(data.feature_count(), data.outputs,
                                     capacity.precision == ProductPrecision::float32),
      capacity);
}

}  // namespace fedep
