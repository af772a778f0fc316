#include "fedep/model/linear.h"

#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/table.h"
#include "fedep/model/blas.h"
#include "fedep/model/initial_weights.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/loss.h"
#include "fedep/model/shared_extras.h"

namespace fedep {
namespace {

class Linear final : public Model {
 public:
  explicit Linear(const LinearShape& shape)
      : shape_(shape),
        weights_(shape.features * shape.outputs),
        layout_{{"weight", {std::int64_t(shape.features), std::int64_t(shape.outputs)}},
                {"bias", {std::int64_t(shape.outputs)}}} {
    if (shape.log_site_sd) layout_.push_back({std::string(kLogSiteSd), {1}});
    if (shape.log_noise) layout_.push_back({std::string(kLogNoise), {1}});
  }

  const Layout& layout() const override { return layout_; }
  std::size_t outputs() const override { return shape_.outputs; }
  Likelihood likelihood() const override { return {shape_.target, shape_.noise}; }

  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    fill_initial_weights(seed, 0, shape_.initial_scale, theta.first(weights_));
    std::fill(theta.begin() + std::ptrdiff_t(weights_), theta.end(), 0.0f);
    const SharedExtras extras = extras_of(layout_);
    if (extras.log_site_sd) theta[*extras.log_site_sd] = float(std::log(kTypicalSiteSd));
  }
  std::vector<Range> live() const override { return {{0, weights_ + shape_.outputs}}; }

  void logits(std::span<const float> theta, const Batch& batch, const Mode&,
              std::span<float> out) override {
    check_same_size("linear", "dense features", batch.size * shape_.features, batch.dense.size());
    for (std::size_t i = 0; i < batch.size; ++i) {
      std::copy_n(theta.data() + weights_, shape_.outputs, out.data() + i * shape_.outputs);
    }
    if (shape_.exposure || !batch.log_exposure.empty()) {  // of counts, which have one output
      check_same_size("linear", "log_exposure", out.size(), batch.log_exposure.size());
      for (std::size_t i = 0; i < batch.size; ++i) out[i] += batch.log_exposure[i];
    }
    multiply(examples(batch), matrix(theta.data(), shape_.features, shape_.outputs), out.data(),
             shape_.outputs, 1.0f);
  }

  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    const double loss = forward(theta, batch, Scale::batch_mean, {});
    multiply(transposed(examples(batch)), delta(batch), gradient.data(), shape_.outputs, mode.keep);
    bias_gradient(delta_.data(), batch.size, shape_.outputs, mode.keep, gradient.data() + weights_);
    return loss;
  }

  void add_squared_gradients(std::span<const float> theta, const Batch& batch, const Mode&,
                             std::span<const float> tag_targets, std::span<float> sum) override {
    forward(theta, batch, Scale::per_example, tag_targets);
    add_squared_products(batch.size, 1, shape_.features, shape_.outputs, batch.dense.data(),
                         delta_.data(), sum.data());
    add_squared_bias_gradient(delta_.data(), batch.size, 1, shape_.outputs, sum.data() + weights_);
  }

 private:
  MatrixView examples(const Batch& batch) const {
    return matrix(batch.dense.data(), batch.size, shape_.features);
  }
  MatrixView delta(const Batch& batch) const {
    return matrix(delta_.data(), batch.size, shape_.outputs);
  }

  double forward(std::span<const float> theta, const Batch& batch, Scale scale,
                 std::span<const float> tag_targets) {
    delta_.resize(batch.size * shape_.outputs);
    logits(theta, batch, {}, delta_);
    return loss_delta(likelihood(), batch, delta_, shape_.outputs, scale, tag_targets, delta_);
  }

  LinearShape shape_;
  std::size_t weights_;  // coordinates before the bias
  Layout layout_;
  std::vector<float> delta_;
};

}  // namespace

std::unique_ptr<Model> make_linear(const LinearShape& shape) {
  return std::make_unique<Linear>(shape);
}

namespace {

// What parameters beside the weights ask of data.
void check_extras(const ModelSettings& settings, const DatasetInfo& data) {
  const bool one_number = data.target == TargetKind::binary || data.target == TargetKind::real ||
                          data.target == TargetKind::count;
  if (settings.site_intercept && (data.sparse || !one_number)) {
    throw InputError(fmt::format(
        "model.site_intercept needs dense columns and an outcome that is yes or no, a number or a "
        "count, but {} have not",
        shown(data.name)));
  }
  if (settings.estimate_noise && (data.sparse || data.target != TargetKind::real)) {
    throw InputError(fmt::format(
        "model.noise can be estimated where the outcome is a number and columns are dense, but {} "
        "are other data",
        shown(data.name)));
  }
}

}  // namespace

std::unique_ptr<Model> linear_model(const ModelSettings& settings, const DatasetInfo& data) {
  check_extras(settings, data);
  const LinearShape shape{.features = data.feature_count(),
                          .outputs = data.outputs,
                          .target = data.target,
                          .noise = settings.noise,
                          .initial_scale = settings.initial_scale,
                          .exposure = data.has_exposure,
                          .log_site_sd = settings.site_intercept,
                          .log_noise = settings.estimate_noise};
  if (data.sparse) return make_sparse_linear(shape);
  return make_linear(shape);
}

// What sparse features ask depends on how many there are.
std::optional<StepWork> linear_work(const DatasetInfo& data) {
  if (data.sparse) return std::nullopt;
  StepWork work;
  work.add_dense(data.feature_count(), data.outputs);
  return work;
}

std::string linear_module_source(const ModelSettings&, const Layout&) {
  return R"(
def forward(self, x):
    return x.flatten(1).matmul(self.weight) + self.bias
)";
}

}  // namespace fedep
