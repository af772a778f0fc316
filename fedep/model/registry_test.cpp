// The models by name: sizes and shapes of reference-facts.md 10, initial weights, and refusals.
#include "fedep/model/registry.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fedep/message/error.h"

namespace fedep {
namespace {

DatasetInfo data_of(const std::string& name, const std::vector<std::int64_t>& features,
                    std::size_t outputs, TargetKind target = TargetKind::label) {
  DatasetInfo info;
  info.name = name;
  info.features = features;
  info.outputs = outputs;
  info.target = target;
  return info;
}

DatasetInfo cifar() { return data_of("cifar100", {24, 24, 3}, 100); }
DatasetInfo emnist() { return data_of("emnist", {28, 28, 1}, 62); }

std::size_t live_size(const Model& model) {
  std::size_t size = 0;
  for (const Range& range : model.live()) size += range.end - range.begin;
  return size;
}

// Standard deviation of a normal cut at two standard deviations.
constexpr double kCutStd = 0.8796;

struct Moments {
  double mean = 0, std = 0, largest = 0;
};

Moments moments(const Model& model, const std::vector<float>& theta, const std::string& name) {
  std::size_t at = 0;
  for (const TensorShape& tensor : model.layout()) {
    if (tensor.name == name) {
      Moments m;
      for (std::size_t i = at; i < at + tensor.size(); ++i) {
        m.mean += double(theta[i]) / double(tensor.size());
        m.std += double(theta[i]) * double(theta[i]) / double(tensor.size());
        m.largest = std::max(m.largest, std::fabs(double(theta[i])));
      }
      m.std = std::sqrt(m.std);
      return m;
    }
    at += tensor.size();
  }
  ADD_FAILURE() << "no tensor " << name;
  return {};
}

std::vector<float> initial(const Model& model) {
  std::vector<float> theta(model.size(), NAN);
  model.initialise(1, theta);
  return theta;
}

TEST(Models, HaveTheSizesOfThePaper) {
  EXPECT_EQ(make_model({.name = "resnet18"}, cifar())->size(), 11'218'212u);
  EXPECT_EQ(make_model({.name = "cnn"}, emnist())->size(), 1'206'590u);
  EXPECT_EQ(make_model({.name = "linear"}, cifar())->size(), 172'900u);
  EXPECT_EQ(make_model({.name = "linear"}, data_of("pca", {100}, 100))->size(), 10'100u);
  DatasetInfo questions = data_of("stackoverflow", {10000}, 500, TargetKind::tags);
  questions.sparse = true;
  EXPECT_EQ(make_model({.name = "linear"}, questions)->size(), 5'000'500u);
}

TEST(Models, OfResnetHaveTheTensorsOfThePaper) {
  const auto model = make_model({.name = "resnet18"}, cifar());
  const Layout& layout = model->layout();
  ASSERT_EQ(layout.size(), 22u);
  std::vector<std::string> names;
  for (const TensorShape& tensor : layout) names.push_back(tensor.name);
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
  EXPECT_EQ(layout.front(), (TensorShape{"group1.block1.conv1", {3, 3, 64, 64}}));
  EXPECT_EQ(layout[4], (TensorShape{"group2.block1.conv1", {3, 3, 64, 128}}));
  EXPECT_EQ(layout[6], (TensorShape{"group2.block1.shortcut", {1, 1, 64, 128}}));
  EXPECT_EQ(layout[18], (TensorShape{"group4.block2.conv2", {3, 3, 512, 512}}));
  EXPECT_EQ(layout[19], (TensorShape{"initial_conv", {7, 7, 3, 64}}));
  EXPECT_EQ(layout[20], (TensorShape{"logits.b", {100}}));
  EXPECT_EQ(layout[21], (TensorShape{"logits.w", {512, 100}}));
}

TEST(Models, OfResnetHaveTheDeadTapsOfThePaper) {
  const auto model = make_model({.name = "resnet18"}, cifar());
  EXPECT_EQ(model->size() - live_size(*model), 6'946'816u);
  const auto cnn = make_model({.name = "cnn"}, emnist());
  EXPECT_EQ(live_size(*cnn), cnn->size());
}

TEST(Models, StartWithTruncatedNormals) {
  const auto resnet = make_model({.name = "resnet18"}, cifar());
  const std::vector<float> theta = initial(*resnet);
  const double scale = 1 / std::sqrt(9.0 * 256);
  const Moments conv = moments(*resnet, theta, "group3.block2.conv1");
  EXPECT_NEAR(conv.mean, 0, 5 * scale / std::sqrt(589824));
  EXPECT_NEAR(conv.std / scale, kCutStd, 0.005);
  EXPECT_LE(conv.largest, 2 * scale * 1.000001);
  EXPECT_GT(conv.largest, 1.99 * scale);
  EXPECT_EQ(moments(*resnet, theta, "logits.w").largest, 0.0);
  EXPECT_EQ(moments(*resnet, theta, "logits.b").largest, 0.0);

  // The scale of CIFAR's linear models.
  const auto linear = make_model({.name = "linear", .initial_scale = 0.1}, cifar());
  EXPECT_NEAR(moments(*linear, initial(*linear), "weight").std, 0.1 * kCutStd, 0.0005);
  EXPECT_EQ(moments(*linear, initial(*linear), "bias").largest, 0.0);
  const auto zero = make_model({.name = "linear"}, cifar());
  EXPECT_EQ(moments(*zero, initial(*zero), "weight").largest, 0.0);

  const auto cnn = make_model({.name = "cnn"}, emnist());
  const std::vector<float> weights = initial(*cnn);
  EXPECT_NEAR(moments(*cnn, weights, "hidden.weight").std * std::sqrt(9216), kCutStd, 0.005);
  EXPECT_NEAR(moments(*cnn, weights, "conv2.weight").std * std::sqrt(288), kCutStd, 0.02);
  EXPECT_EQ(moments(*cnn, weights, "conv2.bias").largest, 0.0);
}

TEST(Models, StartTheSameFromTheSameSeed) {
  for (const std::string name : {"cnn", "resnet_small"}) {
    const auto model = make_model({.name = name}, emnist());
    std::vector<float> other(model->size());
    EXPECT_EQ(initial(*model), initial(*model));
    model->initialise(2, other);
    EXPECT_NE(initial(*model), other);
  }
}

// With all weights zero the logits are the bias, and the loss of c classes is log c.
TEST(Models, KnowNothingAtZeroWeights) {
  for (const ModelRow& row : models()) {
    if (row.is_module) continue;
    const DatasetInfo info = emnist();
    const auto model = make_model({.name = std::string(row.name)}, info);
    std::vector<float> theta(model->size(), 0.0f), gradient(model->size(), 0.0f), out(2 * 62, 1.0f);
    Batch batch;
    batch.size = 2;
    batch.dense.assign(2 * 784, 0.5f);
    batch.labels = {3, 61};
    model->logits(theta, batch, {}, out);
    EXPECT_EQ(out, std::vector<float>(2 * 62, 0.0f)) << row.name;
    EXPECT_NEAR(model->loss_gradient(theta, batch, {}, gradient), std::log(62.0), 1e-6) << row.name;
  }
}

TEST(Models, AreFoundByName) {
  std::set<std::string_view> names;
  for (const ModelRow& row : models()) {
    EXPECT_EQ(&find_model(row.name), &row);
    EXPECT_FALSE(row.summary.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
}

// A weight that data can move takes part in at least one product; biases are added.
TEST(Models, ThatCountTheirWorkMultiplyEveryLiveWeight) {
  for (const ModelRow& row : models()) {
    if (row.step_work == nullptr) continue;
    const auto model = make_model({.name = std::string(row.name)}, cifar());
    std::size_t biases = 0;
    for (const TensorShape& tensor : model->layout()) {
      if (tensor.shape.size() == 1) biases += tensor.size();
    }
    const std::optional<StepWork> work = row.step_work(cifar());
    ASSERT_TRUE(work) << row.name;
    EXPECT_GE(work->multiply_adds, live_size(*model) - biases) << row.name;
    EXPECT_GT(work->activations, cifar().feature_count()) << row.name;
  }
}

TEST(Models, WrittenAsTorchscriptUseEveryTensor) {
  for (const ModelRow& row : models()) {
    if (row.module_source == nullptr) continue;
    const ModelSettings settings{.name = std::string(row.name)};
    const Layout layout = make_model(settings, cifar())->layout();
    const std::string source = row.module_source(settings, layout);
    for (const TensorShape& tensor : layout) {
      EXPECT_NE(source.find("self." + tensor.name), std::string::npos) << row.name << tensor.name;
    }
  }
}

TEST(Models, ThatAreLinearHaveOneCoefficientPerFeatureAndThenTheIntercept) {
  for (const ModelRow& row : models()) {
    if (!row.is_linear) continue;
    const auto model = make_model({.name = std::string(row.name)}, data_of("table", {13}, 1));
    std::vector<float> theta(14, 0.0f), out(1);
    theta[4] = 2;
    theta[13] = 0.5f;
    Batch batch;
    batch.size = 1;
    batch.dense.assign(13, 1.0f);
    batch.dense[4] = 3;
    batch.labels = {0};
    model->logits(theta, batch, {}, out);
    EXPECT_FLOAT_EQ(out[0], 6.5f) << row.name;
  }
}

TEST(Models, RefuseDataWithoutFeatures) {
  for (const ModelRow& row : models()) {
    EXPECT_THROW(make_model({.name = std::string(row.name)}, data_of("empty", {}, 3)), InputError)
        << row.name;
  }
}

TEST(Models, OfUnknownNameSuggestTheNearest) {
  try {
    make_model({.name = "resnet81"}, cifar());
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean resnet18"), std::string::npos)
        << error.what();
  }
}

TEST(Models, RefuseDataTheyCannotTake) {
  const DatasetInfo table = data_of("table", {13}, 1, TargetKind::binary);
  EXPECT_THROW(make_model({.name = "cnn"}, table), InputError);
  EXPECT_THROW(make_model({.name = "resnet18"}, table), InputError);
  EXPECT_NO_THROW(make_model({.name = "linear"}, table));
  EXPECT_THROW(make_model({.name = "linear"}, data_of("empty", {}, 0)), InputError);
}

}  // namespace
}  // namespace fedep
