#include "fedep/model/cnn.h"

#include <algorithm>
#include <cmath>

#include "fedep/model/blas.h"
#include "fedep/model/image_shape.h"
#include "fedep/model/initial_weights.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/pool.h"

namespace fedep {
namespace {

constexpr double kPooledRate = 0.25;  // of dropout
constexpr double kHiddenRate = 0.5;

std::size_t dropout_units(std::size_t n) { return (n + 15) / 16 * 16; }

class Cnn final : public Network {
 public:
  explicit Cnn(const CnnShape& s)
      : shape_(s),
        conv1_(valid_convolution(s.height, s.width, s.channels, s.first, 3, 1)),
        conv2_(valid_convolution(s.height - 2, s.width - 2, s.first, s.second, 3, 1)),
        pool_(valid_max_pool(s.height - 4, s.width - 4, s.second, 2, 2)) {
    const auto add = [this](const char* name, const std::vector<std::size_t>& shape) {
      offsets_.push_back(size_of(layout_));
      layout_.push_back({name, {shape.begin(), shape.end()}});
    };
    add("conv1.weight", {3, 3, s.channels, s.first});
    add("conv1.bias", {s.first});
    add("conv2.weight", {3, 3, s.first, s.second});
    add("conv2.bias", {s.second});
    add("hidden.weight", {pool_.output_size(), s.hidden});
    add("hidden.bias", {s.hidden});
    add("logits.weight", {s.hidden, s.outputs});
    add("logits.bias", {s.outputs});
  }

  const Layout& layout() const override { return layout_; }
  std::size_t input_size() const override { return conv1_.shape().input_size(); }
  std::size_t outputs() const override { return shape_.outputs; }
  std::vector<Range> live() const override { return {{0, size_of(layout_)}}; }

  // Scale 1 / sqrt(fan-in), biases zero.
  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    for (std::size_t i = 0; i < layout_.size(); ++i) {
      const TensorShape& tensor = layout_[i];
      const double fan_in = double(tensor.size()) / double(tensor.shape.back());
      const double scale = tensor.shape.size() == 1 ? 0.0 : 1.0 / std::sqrt(fan_in);
      fill_initial_weights(seed, i, scale, theta.subspan(offsets_[i], tensor.size()));
    }
  }

  // A bias and a rectifier after the largest of four are the largest of four after them, so they
  // are applied to a quarter of the values.
  void forward(const float* theta, std::size_t n, const float* images, const Mode& mode,
               std::size_t first, float* logits) override {
    reserve(n);
    const float* const* w = tensors(theta);
    const std::size_t flat = pool_.output_size();
    conv1_.forward(n, images, w[0], maps1_.data());
    add_bias_rectify(w[1], n * conv1_.shape().positions(), shape_.first, maps1_.data());
    conv2_.forward(n, maps1_.data(), w[2], maps2_.data());
    pool_.forward(n, maps2_.data(), pooled_.data());
    add_bias_rectify(w[3], n * flat / shape_.second, shape_.second, pooled_.data());
    drop(mode, n, first);
    if (dropout_) scale_by(pooled_factor_.data(), n * flat, pooled_.data());

    multiply(matrix(pooled_.data(), n, flat), matrix(w[4], flat, shape_.hidden), hidden_.data(),
             shape_.hidden);
    add_bias_rectify(w[5], n, shape_.hidden, hidden_.data());
    if (dropout_) scale_by(hidden_factor_.data(), n * shape_.hidden, hidden_.data());
    multiply(matrix(hidden_.data(), n, shape_.hidden), matrix(w[6], shape_.hidden, outputs()),
             logits, outputs());
    add_bias(w[7], n, outputs(), logits);
  }

  void backward(const float* theta, std::size_t n, const float* images, const float* delta,
                const GradientSink& sink) override {
    const float* const* w = tensors(theta);
    const std::size_t flat = pool_.output_size();
    sink.dense(n, shape_.hidden, outputs(), hidden_.data(), delta, offsets_[6]);
    sink.bias(n, 1, outputs(), delta, offsets_[7]);
    multiply(matrix(delta, n, outputs()), transposed(matrix(w[6], shape_.hidden, outputs())),
             d_hidden_.data(), shape_.hidden);
    mask_by_sign(hidden_.data(), n * shape_.hidden, d_hidden_.data());
    if (dropout_) scale_by(hidden_factor_.data(), n * shape_.hidden, d_hidden_.data());

    sink.dense(n, flat, shape_.hidden, pooled_.data(), d_hidden_.data(), offsets_[4]);
    sink.bias(n, 1, shape_.hidden, d_hidden_.data(), offsets_[5]);
    multiply(matrix(d_hidden_.data(), n, shape_.hidden),
             transposed(matrix(w[4], flat, shape_.hidden)), d_pooled_.data(), flat);
    mask_by_sign(pooled_.data(), n * flat, d_pooled_.data());
    if (dropout_) scale_by(pooled_factor_.data(), n * flat, d_pooled_.data());

    sink.bias(n, flat / shape_.second, shape_.second, d_pooled_.data(), offsets_[3]);
    float* d_maps2 = maps2_.data();  // its values are no longer needed
    pool_.backward(n, d_pooled_.data(), d_maps2);
    sink.convolution(conv2_, n, maps1_.data(), d_maps2, offsets_[2]);
    conv2_.input_gradient(n, d_maps2, w[2], d_maps1_.data());
    mask_by_sign(maps1_.data(), n * conv1_.shape().output_size(), d_maps1_.data());
    sink.convolution(conv1_, n, images, d_maps1_.data(), offsets_[0]);
    sink.bias(n, conv1_.shape().positions(), shape_.first, d_maps1_.data(), offsets_[1]);
  }

 private:
  const float* const* tensors(const float* theta) {
    tensors_.clear();
    for (const std::size_t offset : offsets_) tensors_.push_back(theta + offset);
    return tensors_.data();
  }

  void reserve(std::size_t n) {
    if (n <= capacity_) return;
    capacity_ = n;
    for (std::vector<float>* maps : {&maps1_, &d_maps1_})
      maps->resize(n * conv1_.shape().output_size());
    maps2_.resize(n * conv2_.shape().output_size());
    for (std::vector<float>* flat : {&pooled_, &d_pooled_, &pooled_factor_}) {
      flat->resize(n * pool_.output_size());
    }
    for (std::vector<float>* hidden : {&hidden_, &d_hidden_, &hidden_factor_}) {
      hidden->resize(n * shape_.hidden);
    }
  }

  // An example's units: those after the pool, then the hidden ones.
  void drop(const Mode& mode, std::size_t n, std::size_t first) {
    dropout_ = mode.dropout != nullptr;
    if (!dropout_) return;
    const std::size_t flat = pool_.output_size();
    const std::size_t per_example = dropout_units(flat) + dropout_units(shape_.hidden);
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t unit = (first + i) * per_example;
      fill_dropout(*mode.dropout, kPooledRate, unit, {pooled_factor_.data() + i * flat, flat});
      fill_dropout(*mode.dropout, kHiddenRate, unit + dropout_units(flat),
                   {hidden_factor_.data() + i * shape_.hidden, shape_.hidden});
    }
  }

  CnnShape shape_;
  Convolution conv1_, conv2_;
  MaxPool pool_;
  Layout layout_;
  std::vector<std::size_t> offsets_;   // of the layout's tensors
  std::vector<const float*> tensors_;  // of the theta at hand
  bool dropout_ = false;
  std::size_t capacity_ = 0;
  std::vector<float> maps1_, maps2_, pooled_, hidden_;  // after each layer
  std::vector<float> d_maps1_, d_pooled_, d_hidden_;
  std::vector<float> pooled_factor_, hidden_factor_;  // dropout
};

CnnShape shape_for(const DatasetInfo& data) {
  const auto [height, width, channels] = image_shape("cnn", data, 6);
  return {.height = height, .width = width, .channels = channels, .outputs = data.outputs};
}

}  // namespace

std::unique_ptr<Network> make_cnn(const CnnShape& shape) { return std::make_unique<Cnn>(shape); }

std::unique_ptr<Model> cnn_model(const ModelSettings& settings, const DatasetInfo& data) {
  return make_network_model(make_cnn(shape_for(data)), {data.target, settings.noise});
}

std::optional<StepWork> cnn_work(const DatasetInfo& data) {
  const CnnShape s = shape_for(data);
  StepWork work;
  work.add_convolution(valid_convolution(s.height, s.width, s.channels, s.first, 3, 1));
  work.add_convolution(valid_convolution(s.height - 2, s.width - 2, s.first, s.second, 3, 1));
  const std::size_t pooled = (s.height - 4) / 2 * ((s.width - 4) / 2) * s.second;
  work.add_pool((s.height - 4) * (s.width - 4) * s.second, pooled);
  work.add_dense(pooled, s.hidden);
  work.add_dense(s.hidden, s.outputs);
  return work;
}

// Kernels are kept as [height, width, in, out]; torch wants [out, in, height, width].
std::string cnn_module_source(const ModelSettings&, const Layout&) {
  return R"(
def forward(self, x):
    x = x.permute(0, 3, 1, 2)
    x = torch.relu(torch.conv2d(x, self.conv1.weight.permute(3, 2, 0, 1), self.conv1.bias))
    x = torch.relu(torch.conv2d(x, self.conv2.weight.permute(3, 2, 0, 1), self.conv2.bias))
    x = torch.max_pool2d(x, [2, 2], [2, 2])
    x = x.permute(0, 2, 3, 1).flatten(1)
    x = torch.relu(x.matmul(self.hidden.weight) + self.hidden.bias)
    return x.matmul(self.logits.weight) + self.logits.bias
)";
}

}  // namespace fedep
