#include <algorithm>
#include <cassert>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/model/initial_weights.h"
#include "fedep/model/layer/elementwise.h"
#include "fedep/model/layer/loss.h"
#include "fedep/model/layer/vector_width.h"
#include "fedep/model/linear.h"

namespace fedep {
namespace {

// y += a x
void add_scaled(float a, const float* x, std::size_t count, float* y) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) y[i] += a * x[i];
  });
}

// sum += a x²
void add_scaled_squares(float a, const float* x, std::size_t count, float* sum) {
  at_full_width([=]() __attribute__((always_inline)) {
    for (std::size_t i = 0; i < count; ++i) sum[i] += a * (x[i] * x[i]);
  });
}

class SparseLinearModel final : public SparseLinear {
 public:
  explicit SparseLinearModel(const LinearShape& shape)
      : shape_(shape),
        weights_(shape.features * shape.outputs),
        layout_{{"weight", {std::int64_t(shape.features), std::int64_t(shape.outputs)}},
                {"bias", {std::int64_t(shape.outputs)}}},
        slots_(shape.features, 0) {}

  const Layout& layout() const override { return layout_; }
  std::size_t outputs() const override { return shape_.outputs; }
  Likelihood likelihood() const override { return {shape_.target, shape_.noise}; }

  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    fill_initial_weights(seed, 0, shape_.initial_scale, theta.first(weights_));
    std::fill(theta.begin() + std::ptrdiff_t(weights_), theta.end(), 0.0f);
  }

  void logits(std::span<const float> theta, const Batch& batch, const Mode&,
              std::span<float> out) override {
    check_batch(batch);
    const std::size_t width = shape_.outputs;
    for (std::size_t i = 0; i < batch.size; ++i) {
      float* row = out.data() + i * width;
      std::copy_n(theta.data() + weights_, width, row);
      for (std::size_t k = batch.sparse.offsets[i]; k < batch.sparse.offsets[i + 1]; ++k) {
        add_scaled(value(batch, k), theta.data() + batch.sparse.columns[k] * width, width, row);
      }
    }
  }

  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    if (mode.keep == 0.0f) {
      std::fill(gradient.begin(), gradient.end(), 0.0f);
    } else {
      for (float& g : gradient) g *= mode.keep;
    }
    const double loss = forward(theta, batch, Scale::batch_mean, {});
    add_by_row(batch, gradient, add_scaled, [](std::size_t row) { return row; });
    for (std::size_t i = 0; i < batch.size; ++i) {
      add_to(delta_.data() + i * shape_.outputs, shape_.outputs, gradient.data() + weights_);
    }
    return loss;
  }

  void add_squared_gradients(std::span<const float> theta, const Batch& batch, const Mode&,
                             std::span<const float> tag_targets, std::span<float> sum) override {
    forward(theta, batch, Scale::per_example, tag_targets);
    add_by_row(batch, sum, add_squared_value, [](std::size_t row) { return row; });
    add_squares_of_bias(batch, sum.subspan(weights_));
  }

  std::unique_ptr<SparseLinear> with_features(std::size_t features) const override {
    LinearShape shape = shape_;
    shape.features = features;
    return make_sparse_linear(shape);
  }

  void touched_rows(const Batch& batch, std::vector<std::uint32_t>& rows) const override {
    rows = batch.sparse.columns;
    std::sort(rows.begin(), rows.end());
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
  }

  void add_squared_row_gradients(std::span<const float> theta, const Batch& batch,
                                 std::span<const std::uint32_t> rows,
                                 std::span<const float> tag_targets,
                                 std::span<float> block) override {
    check_same_size("add_squared_row_gradients", "block", (rows.size() + 1) * shape_.outputs,
                    block.size());
    forward(theta, batch, Scale::per_example, tag_targets);
    number(rows);
    add_by_row(batch, block, add_squared_value, [this](std::size_t row) { return slots_[row]; });
    add_squares_of_bias(batch, block.subspan(rows.size() * shape_.outputs));
  }

 private:
  static float value(const Batch& batch, std::size_t k) {
    return batch.sparse.values.empty() ? 1.0f : batch.sparse.values[k];
  }
  static void add_squared_value(float value, const float* delta, std::size_t count, float* sum) {
    add_scaled_squares(value * value, delta, count, sum);
  }

  void check_batch(const Batch& batch) const {
    check_same_size("linear", "sparse features", batch.size, batch.sparse.rows());
    for (const std::uint32_t column : batch.sparse.columns) {
      if (column >= shape_.features) {
        fail("linear", "a feature", fmt::format("in [0, {})", shape_.features),
             fmt::format("{}", column));
      }
    }
  }

  double forward(std::span<const float> theta, const Batch& batch, Scale scale,
                 std::span<const float> tag_targets) {
    delta_.resize(batch.size * shape_.outputs);
    logits(theta, batch, {}, delta_);
    return loss_delta(likelihood(), batch, delta_, shape_.outputs, scale, tag_targets, delta_);
  }

  // slots_[row] = its place among `rows`; places of others are left over from before.
  void number(std::span<const std::uint32_t> rows) {
    for (std::size_t i = 0; i < rows.size(); ++i) slots_[rows[i]] = std::uint32_t(i);
  }

  // For each example and feature of it: add(value, delta of the example, row of `out`).
  template <class Add, class Place>
  void add_by_row(const Batch& batch, std::span<float> out, Add add, Place place) const {
    const std::size_t width = shape_.outputs;
    for (std::size_t i = 0; i < batch.size; ++i) {
      const float* delta = delta_.data() + i * width;
      for (std::size_t k = batch.sparse.offsets[i]; k < batch.sparse.offsets[i + 1]; ++k) {
        const std::size_t at = place(batch.sparse.columns[k]) * width;
        assert(at + width <= out.size());
        add(value(batch, k), delta, width, out.data() + at);
      }
    }
  }

  void add_squares_of_bias(const Batch& batch, std::span<float> sum) const {
    add_squared_bias_gradient(delta_.data(), batch.size, 1, shape_.outputs, sum.data());
  }

  LinearShape shape_;
  std::size_t weights_;  // coordinates before the bias
  Layout layout_;
  std::vector<std::uint32_t> slots_;
  std::vector<float> delta_;
};

}  // namespace

std::unique_ptr<SparseLinear> make_sparse_linear(const LinearShape& shape) {
  return std::make_unique<SparseLinearModel>(shape);
}

}  // namespace fedep
