#include "fedep/model/network.h"

#include <algorithm>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/model/blas.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/loss.h"

namespace fedep {

void GradientSink::convolution(Convolution& conv, std::size_t n, const float* x, const float* dy,
                               std::size_t offset) const {
  if (squares_) {
    conv.add_squared_weight_gradient(n, x, dy, out_.data() + offset);
  } else {
    conv.weight_gradient(n, x, dy, keep_, out_.data() + offset);
  }
}

void GradientSink::dense(std::size_t n, std::size_t in, std::size_t out, const float* x,
                         const float* dy, std::size_t offset) const {
  if (squares_) {
    add_squared_products(n, 1, in, out, x, dy, out_.data() + offset);
  } else {
    multiply(transposed(matrix(x, n, in)), matrix(dy, n, out), out_.data() + offset, out, keep_);
  }
}

void GradientSink::bias(std::size_t n, std::size_t positions, std::size_t channels, const float* dy,
                        std::size_t offset) const {
  if (squares_) {
    add_squared_bias_gradient(dy, n, positions, channels, out_.data() + offset);
  } else {
    bias_gradient(dy, n * positions, channels, keep_, out_.data() + offset);
  }
}

namespace {

// Predictions are made for this many examples at a time: more would only leave the cache.
constexpr std::size_t kExamplesAtOnce = 32;

class NetworkModel final : public Model {
 public:
  NetworkModel(std::unique_ptr<Network> network, const Likelihood& likelihood)
      : network_(std::move(network)), likelihood_(likelihood) {}

  const Layout& layout() const override { return network_->layout(); }
  std::size_t outputs() const override { return network_->outputs(); }
  Likelihood likelihood() const override { return likelihood_; }
  std::vector<Range> live() const override { return network_->live(); }
  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    network_->initialise(seed, theta);
  }

  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    return forward_backward(theta, batch, mode, Scale::batch_mean, {},
                            GradientSink::gradients(mode.keep, gradient));
  }

  void add_squared_gradients(std::span<const float> theta, const Batch& batch, const Mode& mode,
                             std::span<const float> tag_targets, std::span<float> sum) override {
    forward_backward(theta, batch, mode, Scale::per_example, tag_targets,
                     GradientSink::squares(sum));
  }

  void logits(std::span<const float> theta, const Batch& batch, const Mode& mode,
              std::span<float> out) override {
    check_images(batch);
    for (std::size_t i = 0; i < batch.size; i += kExamplesAtOnce) {
      const std::size_t n = std::min(kExamplesAtOnce, batch.size - i);
      network_->forward(theta.data(), n, batch.dense.data() + i * network_->input_size(), mode, i,
                        out.data() + i * outputs());
    }
  }

 private:
  void check_images(const Batch& batch) const {
    check_same_size("network", "dense features", batch.size * network_->input_size(),
                    batch.dense.size());
  }

  double forward_backward(std::span<const float> theta, const Batch& batch, const Mode& mode,
                          Scale scale, std::span<const float> tag_targets,
                          const GradientSink& sink) {
    check_images(batch);
    delta_.resize(batch.size * outputs());
    network_->forward(theta.data(), batch.size, batch.dense.data(), mode, 0, delta_.data());
    const double loss =
        loss_delta(likelihood_, batch, delta_, outputs(), scale, tag_targets, delta_);
    network_->backward(theta.data(), batch.size, batch.dense.data(), delta_.data(), sink);
    return loss;
  }

  std::unique_ptr<Network> network_;
  Likelihood likelihood_;
  std::vector<float> delta_;
};

}  // namespace

std::unique_ptr<Model> make_network_model(std::unique_ptr<Network> network,
                                          const Likelihood& likelihood) {
  return std::make_unique<NetworkModel>(std::move(network), likelihood);
}

}  // namespace fedep
