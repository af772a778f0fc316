// A linear model of counts: e^(x·w + b) times the exposure.
#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/model/linear.h"
#include "fedep/model/registry.h"
#include "fedep/model/test_model_laws.h"

namespace fedep {
namespace {

Batch counts(std::size_t n, std::size_t features) {
  Batch batch;
  batch.size = n;
  batch.dense.resize(n * features);
  fill_normal({.seed = 7}, batch.dense);
  for (std::size_t i = 0; i < n; ++i) {
    batch.reals.push_back(float(i % 4));
    batch.log_exposure.push_back(0.3f * float(i) - 0.5f);
  }
  return batch;
}

std::vector<float> small_weights(const Model& model) {
  std::vector<float> theta(model.size());
  fill_normal({.seed = 8}, theta);
  for (float& weight : theta) weight *= 0.3f;
  return theta;
}

TEST(CountModel, ExposuresAddTheirLogToTheOutput) {
  const auto model = make_linear({.features = 3, .outputs = 1, .target = TargetKind::count});
  const std::vector<float> theta = small_weights(*model);
  Batch batch = counts(5, 3);
  std::vector<float> with(5), without(5);
  model->logits(theta, batch, {}, with);
  const std::vector<float> exposures = batch.log_exposure;
  batch.log_exposure.clear();
  model->logits(theta, batch, {}, without);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(with[i], without[i] + exposures[i], 1e-6f);
  batch.log_exposure = {1, 2};
  EXPECT_THROW(model->logits(theta, batch, {}, with), InputError);
}

TEST(CountModel, TheGradientIsThatOfCentralDifferences) {
  const auto model = make_linear({.features = 3, .outputs = 1, .target = TargetKind::count});
  const std::vector<float> theta = small_weights(*model);
  const Batch batch = counts(6, 3);
  std::vector<float> gradient(4);
  const double loss = model->loss_gradient(theta, batch, {}, gradient);
  const auto plain = [&](const std::vector<double>& w) {
    double sum = 0;
    for (std::size_t i = 0; i < 6; ++i) {
      double z = w[3] + double(batch.log_exposure[i]);
      for (std::size_t j = 0; j < 3; ++j) z += w[j] * double(batch.dense[3 * i + j]);
      const double y = double(batch.reals[i]);
      sum += std::exp(z) - y * z + std::lgamma(y + 1);
    }
    return sum / 6;
  };
  const std::vector<double> at(theta.begin(), theta.end());
  EXPECT_NEAR(loss, plain(at), 1e-5);
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<double> up = at, down = at;
    up[i] += 1e-6;
    down[i] -= 1e-6;
    EXPECT_NEAR(double(gradient[i]), (plain(up) - plain(down)) / 2e-6, 1e-5) << i;
  }
}

TEST(CountModel, KeepsTheLawsOfModels) {
  const auto model = make_linear({.features = 4, .outputs = 1, .target = TargetKind::count});
  Batch batch = counts(6, 4);
  batch.log_exposure.clear();  // which the laws' single examples do not have
  expect_model_laws(*model, small_weights(*model), batch);
}

TEST(CountModel, ExposuresNeedALinearModel) {
  DatasetInfo info;
  info.features = {28, 28, 1};
  info.target = TargetKind::count;
  info.outputs = 1;
  info.has_exposure = true;
  try {
    make_model({.name = "cnn"}, info);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_EQ(std::string(error.what()),
              "model cnn: exposures (data.exposure_column) need the model linear");
  }
  info.features = {3};
  const auto model = make_model({.name = "linear"}, info);
  EXPECT_EQ(model->target(), TargetKind::count);
  // Rows whose exposures were lost on their way are refused, not taken for exposures of 1.
  Batch batch = counts(2, 3);
  std::vector<float> out(2);
  model->logits(small_weights(*model), batch, {}, out);
  batch.log_exposure.clear();
  EXPECT_THROW(model->logits(small_weights(*model), batch, {}, out), InputError);
}

}  // namespace
}  // namespace fedep
