#include "fedep/model/linear.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "fedep/message/error.h"
#include "fedep/model/test_model_laws.h"

namespace fedep {
namespace {

Batch dense_batch(std::size_t n, std::size_t features, TargetKind target, std::size_t outputs) {
  Batch batch;
  batch.size = n;
  batch.dense.resize(n * features);
  fill_normal({.seed = 41}, batch.dense);
  for (std::size_t i = 0; i < n; ++i) {
    if (target == TargetKind::label) batch.labels.push_back(std::int32_t(i % outputs));
    if (target == TargetKind::binary) batch.labels.push_back(std::int32_t(i % 2));
    if (target == TargetKind::real) batch.reals.push_back(float(i) - 1.5f);
    if (target == TargetKind::tags) {
      batch.tags.columns.push_back(std::uint32_t(i % outputs));
      batch.tags.offsets.push_back(std::uint32_t(i + 1));
    }
  }
  return batch;
}

// Two thirds of the features zero, none of them in the last fifth.
std::vector<float> thinned(std::vector<float> x, std::size_t features) {
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 3 != 0 || i % features >= features - features / 5) x[i] = 0.0f;
  }
  return x;
}

SparseRows sparse_of(const std::vector<float>& x, std::size_t features) {
  SparseRows rows;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] != 0.0f) {
      rows.columns.push_back(std::uint32_t(i % features));
      rows.values.push_back(x[i]);
    }
    if (i % features == features - 1) rows.offsets.push_back(std::uint32_t(rows.columns.size()));
  }
  return rows;
}

std::vector<float> some_weights(const Model& model) {
  std::vector<float> theta(model.size());
  fill_normal({.seed = 42}, theta);
  return theta;
}

class LinearOfKind : public testing::TestWithParam<TargetKind> {
 protected:
  static constexpr std::size_t n = 6, features = 20;
  const TargetKind target = GetParam();
  const std::size_t outputs = target == TargetKind::label || target == TargetKind::tags ? 5 : 1;
  const LinearShape shape{.features = features, .outputs = outputs, .target = target, .noise = 1.5};
  Batch batch = dense_batch(n, features, target, outputs);
};

TEST_P(LinearOfKind, KeepsTheLawsOfModels) {
  const auto model = make_linear(shape);
  expect_model_laws(*model, some_weights(*model), batch);
  batch.dense = thinned(batch.dense, features);
  batch.sparse = sparse_of(batch.dense, features);
  const auto sparse = make_sparse_linear(shape);
  expect_model_laws(*sparse, some_weights(*sparse), batch);
}

TEST_P(LinearOfKind, HasTheGradientOfCentralDifferences) {
  const auto model = make_linear(shape);
  const std::vector<float> theta = some_weights(*model);
  std::vector<float> gradient(model->size());
  model->loss_gradient(theta, batch, {}, gradient);
  // The loss in double, from logits in double.
  const auto loss = [&](const std::vector<double>& w) {
    double sum = 0;
    for (std::size_t i = 0; i < n; ++i) {
      double total = 0, at_label = 0;
      for (std::size_t o = 0; o < outputs; ++o) {
        double z = w[features * outputs + o];
        for (std::size_t f = 0; f < features; ++f) {
          z += double(batch.dense[i * features + f]) * w[f * outputs + o];
        }
        const double y = target == TargetKind::tags     ? double(batch.tags.columns[i] == o)
                         : target == TargetKind::binary ? double(batch.labels[i])
                                                        : 0.0;
        if (target == TargetKind::label) {
          total += std::exp(z);
          if (std::size_t(batch.labels[i]) == o) at_label = z;
        } else if (target == TargetKind::real) {
          total += 0.5 * std::pow((z - double(batch.reals[i])) / shape.noise, 2);
        } else {
          total += (std::log1p(std::exp(z)) - y * z) / double(outputs);
        }
      }
      sum += target == TargetKind::label ? std::log(total) - at_label : total;
    }
    return sum / double(n);
  };
  for (std::size_t i = 0; i < theta.size(); ++i) {
    std::vector<double> up(theta.begin(), theta.end()), down = up;
    up[i] += 1e-6;
    down[i] -= 1e-6;
    EXPECT_NEAR(double(gradient[i]), (loss(up) - loss(down)) / 2e-6, 1e-5) << i;
  }
}

TEST_P(LinearOfKind, IsTheSameOnSparseAndDenseFeatures) {
  const auto dense = make_linear(shape);
  const auto sparse = make_sparse_linear(shape);
  EXPECT_EQ(dense->layout(), sparse->layout());
  batch.dense = thinned(batch.dense, features);
  batch.sparse = sparse_of(batch.dense, features);
  const std::vector<float> theta = some_weights(*dense);
  std::vector<float> a(theta.size()), b(theta.size()), squares_a(theta.size()),
      squares_b(theta.size());
  EXPECT_NEAR(dense->loss_gradient(theta, batch, {}, a), sparse->loss_gradient(theta, batch, {}, b),
              1e-6);
  dense->add_squared_gradients(theta, batch, {}, {}, squares_a);
  sparse->add_squared_gradients(theta, batch, {}, {}, squares_b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a[i], b[i], 1e-5f) << i;
    EXPECT_NEAR(squares_a[i], squares_b[i], 1e-4f * squares_a[i] + 1e-6f) << i;
  }
}

TEST_P(LinearOfKind, HasSquaredGradientsOnlyOnTouchedRows) {
  const auto model = make_sparse_linear(shape);
  batch.sparse = sparse_of(thinned(batch.dense, features), features);
  std::vector<float> theta = some_weights(*model);
  std::vector<float> whole_squares(theta.size(), 0.0f);
  model->add_squared_gradients(theta, batch, {}, {}, whole_squares);

  std::vector<std::uint32_t> rows;
  model->touched_rows(batch, rows);
  EXPECT_TRUE(std::is_sorted(rows.begin(), rows.end()));
  EXPECT_LE(rows.size(), features - features / 5);
  // Rows that are not touched are not read either.
  std::vector<bool> touched(features, false);
  for (const std::uint32_t row : rows) touched[row] = true;
  for (std::size_t i = 0; i < features * outputs; ++i) {
    if (!touched[i / outputs]) theta[i] = NAN;
  }
  std::vector<float> squares((rows.size() + 1) * outputs, 0.0f);
  model->add_squared_row_gradients(theta, batch, rows, {}, squares);
  std::vector<float> spread_squares(whole_squares.size(), 0.0f);
  for (std::size_t r = 0; r <= rows.size(); ++r) {
    const std::size_t row = r < rows.size() ? rows[r] : features;  // the bias comes after the last
    for (std::size_t o = 0; o < outputs; ++o) {
      spread_squares[row * outputs + o] = squares[r * outputs + o];
    }
  }
  EXPECT_EQ(spread_squares, whole_squares);
}

INSTANTIATE_TEST_SUITE_P(Kinds, LinearOfKind,
                         testing::Values(TargetKind::label, TargetKind::binary, TargetKind::tags,
                                         TargetKind::real));

TEST(Linear, RefusesFeaturesOfAnotherSize) {
  const auto model = make_linear({.features = 4, .outputs = 3});
  const auto sparse = make_sparse_linear({.features = 4, .outputs = 3});
  Batch batch = dense_batch(2, 5, TargetKind::label, 3);
  batch.sparse = {{0, 1, 2}, {1, 4}, {}};
  std::vector<float> theta(model->size()), out(6);
  EXPECT_THROW(model->logits(theta, batch, {}, out), InputError);
  EXPECT_THROW(sparse->logits(theta, batch, {}, out), InputError);
}

TEST(SparseLinear, TakesMissingValuesForOnes) {
  const auto model = make_sparse_linear({.features = 3, .outputs = 2});
  Batch batch;
  batch.size = 2;
  batch.sparse = {{0, 2, 2}, {0, 2}, {}};  // the second example has no features at all
  const std::vector<float> theta{1, 2, 10, 20, 100, 200, 0.5f, 0.25f};
  std::vector<float> out(4);
  model->logits(theta, batch, {}, out);
  EXPECT_EQ(out, (std::vector<float>{101.5f, 202.25f, 0.5f, 0.25f}));
}

}  // namespace
}  // namespace fedep
