// What holds for every model, whatever it computes; tests of models call it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedep/model/model.h"

namespace fedep {

// One example of a batch with dense or sparse features and any kind of targets.
inline Batch example_of(const Batch& batch, std::size_t i) {
  Batch one;
  one.size = 1;
  const std::size_t width = batch.dense.size() / batch.size;
  one.dense.assign(batch.dense.begin() + std::ptrdiff_t(i * width),
                   batch.dense.begin() + std::ptrdiff_t((i + 1) * width));
  const auto row = [i](const SparseRows& rows) {
    SparseRows out;
    if (rows.rows() == 0) return out;
    for (std::size_t k = rows.offsets[i]; k < rows.offsets[i + 1]; ++k) {
      out.columns.push_back(rows.columns[k]);
      if (!rows.values.empty()) out.values.push_back(rows.values[k]);
    }
    out.offsets.push_back(std::uint32_t(out.columns.size()));
    return out;
  };
  one.sparse = row(batch.sparse);
  one.tags = row(batch.tags);
  if (!batch.labels.empty()) one.labels = {batch.labels[i]};
  if (!batch.reals.empty()) one.reals = {batch.reals[i]};
  return one;
}

// The batch's loss and gradient are means over its examples; squared gradients are sums over them;
// dead coordinates are never written and live ones are; `keep` keeps; the same call gives the same
// bits.
inline void expect_model_laws(Model& model, const std::vector<float>& theta, const Batch& batch) {
  const std::size_t size = model.size();
  ASSERT_EQ(theta.size(), size);
  std::vector<bool> live(size, false);
  std::size_t end = 0;
  for (const Range& range : model.live()) {
    ASSERT_LE(end, range.begin);
    ASSERT_LT(range.begin, range.end);
    end = range.end;
    std::fill(live.begin() + std::ptrdiff_t(range.begin), live.begin() + std::ptrdiff_t(end), true);
  }
  ASSERT_LE(end, size);

  std::vector<float> gradient(size, -77.0f), again(size, -77.0f);
  const double loss = model.loss_gradient(theta, batch, {}, gradient);
  EXPECT_EQ(loss, model.loss_gradient(theta, batch, {}, again));
  EXPECT_EQ(gradient, again);

  double mean_loss = 0;
  std::vector<double> mean(size, 0.0), squares(size, 0.0);
  std::vector<float> one(size, 0.0f), out(batch.size * model.outputs()), single(model.outputs());
  model.logits(theta, batch, {}, out);
  for (std::size_t i = 0; i < batch.size; ++i) {
    const Batch example = example_of(batch, i);
    mean_loss += model.loss_gradient(theta, example, {}, one) / double(batch.size);
    for (std::size_t j = 0; j < size; ++j) {
      mean[j] += double(one[j]) / double(batch.size);
      squares[j] += double(one[j]) * double(one[j]);
    }
    model.logits(theta, example, {}, single);
    for (std::size_t c = 0; c < single.size(); ++c) {
      EXPECT_NEAR(double(single[c]), double(out[i * single.size() + c]), 1e-5);
    }
  }
  EXPECT_NEAR(loss, mean_loss, 1e-5);

  std::vector<float> sum(size, 0.5f);
  model.add_squared_gradients(theta, batch, {}, {}, sum);
  std::vector<float> kept(size, 2.0f);
  model.loss_gradient(theta, batch, {.keep = 0.25f}, kept);
  double norm = 0, square_norm = 0;
  for (std::size_t j = 0; j < size; ++j) norm += mean[j] * mean[j], square_norm += squares[j];
  norm = std::sqrt(norm);
  std::size_t moved = 0, alive = 0;
  for (std::size_t j = 0; j < size; ++j) {
    if (!live[j]) {
      ASSERT_EQ(gradient[j], -77.0f) << j;
      ASSERT_EQ(sum[j], 0.5f) << j;
      ASSERT_EQ(kept[j], 2.0f) << j;
      ASSERT_EQ(mean[j], 0.0) << j;
      continue;
    }
    ++alive;
    moved += gradient[j] != 0.0f;
    ASSERT_NEAR(double(gradient[j]), mean[j], 2e-6 * norm + 1e-9) << j;
    ASSERT_NEAR(double(sum[j]) - 0.5, squares[j], 1e-5 * squares[j] + 1e-6 * square_norm + 1e-7)
        << j;
    ASSERT_NEAR(double(kept[j]), 0.5 + mean[j], 2e-6 * norm + 1e-7) << j;
  }
  EXPECT_GT(moved, alive / 3);  // rectifiers, untouched features and unlucky pools leave zeros
}

}  // namespace fedep
