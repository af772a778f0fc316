#include "fedep/cuda/network/cohort_cnn.h"

#include <algorithm>

#include "fedep/cuda/network/cohort_network.h"
#include "fedep/cuda/network/layer_kernels.h"
#include "fedep/model/cnn.h"

namespace fedep {
namespace {

constexpr float kPooledRate = 0.25f;  // of dropout, as in model/cnn.cpp
constexpr float kHiddenRate = 0.5f;

std::size_t dropout_units(std::size_t n) { return (n + 15) / 16 * 16; }

class CohortCnn final : public CohortNetwork {
 public:
  CohortCnn(const CnnShape& s, const CohortCapacity& capacity)
      : s_(s),
        precise_(capacity.precision == ProductPrecision::float32),
        conv1_(geometry_of(valid_convolution(s.height, s.width, s.channels, s.first, 3, 1))),
        conv2_(geometry_of(valid_convolution(s.height - 2, s.width - 2, s.first, s.second, 3, 1))) {
    pool_.height = conv2_.out_height;
    pool_.width = conv2_.out_width;
    pool_.channels = int(s.second);
    pool_.out_height = pool_.height / 2;
    pool_.out_width = pool_.width / 2;
    flat_ = std::size_t(pool_.out_height * pool_.out_width) * s.second;
    check_extent(gpu::make_patches(conv1_), capacity.rows);
    check_extent(conv2_, capacity.rows);
    hidden_layer_ = gpu::make_dense(int(flat_), int(s.hidden));
    logits_layer_ = gpu::make_dense(int(s.hidden), int(s.outputs));

    std::size_t at = 0;
    const auto place = [&at](std::size_t size) {
      const std::size_t here = at;
      at += size;
      return here;
    };
    at_conv1_ = place(9 * s.channels * s.first);
    at_bias1_ = place(s.first);
    at_conv2_ = place(9 * s.first * s.second);
    at_bias2_ = place(s.second);
    at_hidden_ = place(flat_ * s.hidden);
    at_hidden_bias_ = place(s.hidden);
    at_logits_ = place(s.hidden * s.outputs);
    at_logits_bias_ = place(s.outputs);
    size_ = at;

    const std::size_t n = capacity.clients * capacity.rows;
    const std::size_t maps1 = std::size_t(conv1_.output_positions()) * s.first;
    const std::size_t maps2 = std::size_t(conv2_.output_positions()) * s.second;
    maps1_ = zeros(n * maps1);
    d_maps1_ = zeros(n * maps1);
    maps2_ = zeros(n * maps2);
    pooled_ = zeros(n * flat_);
    d_pooled_ = zeros(n * flat_);
    hidden_ = zeros(n * s.hidden);
    d_hidden_ = zeros(n * s.hidden);
    source_ = DeviceArray<std::uint8_t>(n * flat_);
    source_.zero();
    patches_layer_ = gpu::make_patches(conv1_);
    patches_ = zeros(n * std::size_t(conv1_.output_positions() * patches_layer_.in));
    partial_ =
        zeros(gpu::kMostSplits * capacity.clients * 9 * std::max(s.channels, s.second) * s.first);
  }

  std::size_t size() const override { return size_; }
  std::size_t features() const override { return s_.height * s_.width * s_.channels; }
  std::size_t outputs() const override { return s_.outputs; }
  bool has_dropout() const override { return true; }

  void forward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float* images,
               const CohortDropout& dropout, float* logits) override {
    const CudaStream stream = device_stream();
    gpu::Forward f;
    f.stride = weights.stride;
    gpu::copy_out_patches(conv1_, cohort.clients * cohort.rows, images, patches_.data(), stream);
    f.x = patches_.data();
    f.weights = weights.theta + at_conv1_;
    f.bias = weights.theta + at_bias1_;
    f.rectify_y = true;
    f.round_y = true;
    f.y = maps1_.data();
    gpu::convolve(patches_layer_, cohort, f, precise_, stream);
    f.x = maps1_.data();
    f.x_is_tf32 = true;
    f.weights = weights.theta + at_conv2_;
    f.bias = nullptr;
    f.rectify_y = false;
    f.round_y = false;
    f.y = maps2_.data();
    gpu::convolve(conv2_, cohort, f, precise_, stream);
    gpu::Dropout drop{.streams = dropout.streams,
                      .units = dropout_units(flat_) + dropout_units(s_.hidden),
                      .rate = kPooledRate};
    dropped_ = drop.streams != nullptr;
    gpu::max_pool_rectify(pool_, cohort, maps2_.data(), weights.theta + at_bias2_, weights.stride,
                          drop, pooled_.data(), source_.data(), stream);
    f.x = pooled_.data();
    f.x_is_tf32 = false;
    f.weights = weights.theta + at_hidden_;
    f.bias = weights.theta + at_hidden_bias_;
    f.rectify_y = true;
    f.y = hidden_.data();
    gpu::convolve(hidden_layer_, cohort, f, precise_, stream);
    if (dropped_) {
      drop.first = dropout_units(flat_);
      drop.rate = kHiddenRate;
      gpu::drop_out(int(s_.hidden), cohort, drop, hidden_.data(), stream);
    }
    f.x = hidden_.data();
    f.weights = weights.theta + at_logits_;
    f.bias = weights.theta + at_logits_bias_;
    f.rectify_y = false;
    f.y = logits;
    gpu::convolve(logits_layer_, cohort, f, precise_, stream);
  }

  // What was dropped is 0, so the sign of a value tells both rectifier and dropout.
  void backward(const gpu::CohortShape& cohort, const CohortTheta& weights, const float*,
                const float* delta, const CohortSink& sink) override {
    const CudaStream stream = device_stream();
    gpu::InputGradient b;
    b.stride = weights.stride;
    b.dy = delta;
    b.weights = weights.theta + at_logits_;
    b.where_positive = hidden_.data();
    b.scale = dropped_ ? 1.0f / (1.0f - kHiddenRate) : 1.0f;
    b.dx = d_hidden_.data();
    gpu::input_gradient(logits_layer_, cohort, b, precise_, stream);
    sink.weights(logits_layer_, cohort, operands(hidden_.data(), delta, nullptr), at_logits_);
    sink.bias(1, int(s_.outputs), cohort, delta, at_logits_bias_);

    b.dy = d_hidden_.data();
    b.weights = weights.theta + at_hidden_;
    b.where_positive = pooled_.data();
    b.scale = dropped_ ? 1.0f / (1.0f - kPooledRate) : 1.0f;
    b.dx = d_pooled_.data();
    gpu::input_gradient(hidden_layer_, cohort, b, precise_, stream);
    sink.weights(hidden_layer_, cohort, operands(pooled_.data(), d_hidden_.data(), nullptr),
                 at_hidden_);
    sink.bias(1, int(s_.hidden), cohort, d_hidden_.data(), at_hidden_bias_);

    sink.bias(pool_.out_height * pool_.out_width, int(s_.second), cohort, d_pooled_.data(),
              at_bias2_);
    float* const d_maps2 = maps2_.data();  // its values are no longer needed
    gpu::max_pool_backward(pool_, cohort.clients * cohort.rows, d_pooled_.data(), source_.data(),
                           d_maps2, stream);
    b.dy = d_maps2;
    b.weights = weights.theta + at_conv2_;
    b.where_positive = maps1_.data();
    b.scale = 1.0f;
    b.dx = d_maps1_.data();
    gpu::input_gradient(conv2_, cohort, b, precise_, stream);
    gpu::WeightGradient w = operands(maps1_.data(), d_maps2, partial_.data());
    w.x_is_tf32 = true;
    sink.weights(conv2_, cohort, w, at_conv2_);
    sink.weights(patches_layer_, cohort,
                 operands(patches_.data(), d_maps1_.data(), partial_.data()), at_conv1_);
    sink.bias(conv1_.output_positions(), int(s_.first), cohort, d_maps1_.data(), at_bias1_);
  }

 private:
  static gpu::WeightGradient operands(const float* x, const float* dy, float* partial) {
    gpu::WeightGradient f;
    f.x = x;
    f.dy = dy;
    f.partial = partial;
    return f;
  }

  CnnShape s_;
  bool precise_;
  bool dropped_ = false;  // in the last forward pass
  gpu::Geometry conv1_, patches_layer_, conv2_, hidden_layer_,
      logits_layer_;  // patches: the first, on rows
  gpu::PoolShape pool_;
  std::size_t flat_ = 0, size_ = 0;
  std::size_t at_conv1_ = 0, at_bias1_ = 0, at_conv2_ = 0, at_bias2_ = 0;
  std::size_t at_hidden_ = 0, at_hidden_bias_ = 0, at_logits_ = 0, at_logits_bias_ = 0;
  DeviceArray<float> maps1_, maps2_, pooled_, hidden_;
  DeviceArray<float> d_maps1_, d_pooled_, d_hidden_;
  DeviceArray<float> patches_, partial_;
  DeviceArray<std::uint8_t> source_;
};

}  // namespace

std::unique_ptr<CohortModel> make_cohort_cnn(const ModelSettings&, const DatasetInfo& data,
                                             const CohortCapacity& capacity) {
  CnnShape shape;
  shape.height = std::size_t(data.features.at(0));
  shape.width = std::size_t(data.features.at(1));
  shape.channels = std::size_t(data.features.at(2));
  shape.outputs = data.outputs;
  return make_network_cohort(std::make_unique<CohortCnn>(shape, capacity), capacity);
}

}  // namespace fedep
