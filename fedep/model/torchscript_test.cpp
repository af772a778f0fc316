#include "fedep/model/torchscript.h"

#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "fedep/message/error.h"
#include "fedep/model/linear.h"
#include "fedep/model/test_model_laws.h"

namespace fedep {
namespace {

constexpr std::int64_t kFeatures = 6, kOutputs = 4;

// A file with a module of parameters weight [6, 4] and bias [4], gone when the test is.
class SavedModule {
 public:
  explicit SavedModule(const std::string& forward) {
    torch::manual_seed(3);
    torch::jit::Module module("linear");
    module.register_parameter("weight", torch::randn({kFeatures, kOutputs}), false);
    module.register_parameter("bias", torch::randn({kOutputs}), false);
    module.register_buffer("count", torch::zeros({1}));
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(forward);
    module.save(path_.string());
  }
  ~SavedModule() { std::filesystem::remove(path_); }
  SavedModule(const SavedModule&) = delete;
  SavedModule& operator=(const SavedModule&) = delete;

  ModelSettings settings() const { return {.name = "torchscript", .path = path_.string()}; }

 private:
  std::filesystem::path path_ = std::filesystem::temp_directory_path() /
                                ("fedep_torchscript_test_" + std::to_string(::getpid()) + ".pt");
};

const std::string kLinear = "def forward(self, x):\n  return x.matmul(self.weight) + self.bias\n";

DatasetInfo data_of(std::size_t outputs = std::size_t(kOutputs)) {
  DatasetInfo info;
  info.name = "table";
  info.features = {kFeatures};
  info.outputs = outputs;
  return info;
}

Batch some_batch() {
  Batch batch;
  batch.size = 5;
  batch.dense.resize(5 * kFeatures);
  fill_normal({.seed = 51}, batch.dense);
  batch.labels = {0, 1, 2, 3, 1};
  return batch;
}

TEST(Torchscript, OfALinearModuleIsTheLinearModel) {
  const SavedModule module(kLinear);
  const auto model = make_torchscript(module.settings(), data_of());
  const auto linear = make_linear({.features = kFeatures, .outputs = kOutputs});
  EXPECT_EQ(model->layout(), linear->layout());
  std::vector<float> theta(model->size()), a(theta.size()), b(theta.size());
  model->initialise(1, theta);
  const Batch batch = some_batch();
  EXPECT_NEAR(model->loss_gradient(theta, batch, {}, a), linear->loss_gradient(theta, batch, {}, b),
              1e-6);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-6f);
  std::fill(a.begin(), a.end(), 0.0f);
  std::fill(b.begin(), b.end(), 0.0f);
  model->add_squared_gradients(theta, batch, {}, {}, a);
  linear->add_squared_gradients(theta, batch, {}, {}, b);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-5f * b[i] + 1e-7f);
}

TEST(Torchscript, OfNumbersDividesByTheVarianceOfTheNoise) {
  const SavedModule module(
      "def forward(self, x):\n  return x.matmul(self.weight)[:, 0:1] + self.bias[0]\n");
  DatasetInfo data = data_of(1);
  data.target = TargetKind::real;
  ModelSettings settings = module.settings();
  const auto unit = make_torchscript(settings, data);
  settings.noise = 2;
  const auto model = make_torchscript(settings, data);
  std::vector<float> theta(model->size()), a(theta.size()), b(theta.size());
  model->initialise(1, theta);
  Batch batch = some_batch();
  batch.labels.clear();
  batch.reals = {1, -2, 0.5f, 3, 0};
  EXPECT_EQ(model->loss_gradient(theta, batch, {}, a),
            unit->loss_gradient(theta, batch, {}, b) / 4);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i] / 4);
  std::fill(a.begin(), a.end(), 0.0f);
  std::fill(b.begin(), b.end(), 0.0f);
  model->add_squared_gradients(theta, batch, {}, {}, a);
  unit->add_squared_gradients(theta, batch, {}, {}, b);
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i], b[i] / 16);
}

TEST(Torchscript, KeepsTheLawsOfModels) {
  const SavedModule module(kLinear);
  const auto model = make_torchscript(module.settings(), data_of());
  std::vector<float> theta(model->size());
  fill_normal({.seed = 52}, theta);
  expect_model_laws(*model, theta, some_batch());
}

TEST(Torchscript, DrawsDropoutFromItsAddress) {
  const SavedModule module(
      "def forward(self, x):\n  return torch.dropout(x, 0.5, self.training).matmul(self.weight) + "
      "self.bias\n");
  const auto model = make_torchscript(module.settings(), data_of());
  std::vector<float> theta(model->size()), a(20), b(20), c(20), plain(20);
  model->initialise(1, theta);
  const Address address{.seed = 1, .purpose = Purpose::dropout},
      other{.seed = 2, .purpose = Purpose::dropout};
  model->logits(theta, some_batch(), {.dropout = &address}, a);
  model->logits(theta, some_batch(), {.dropout = &other}, b);
  model->logits(theta, some_batch(), {.dropout = &address}, c);
  model->logits(theta, some_batch(), {}, plain);
  EXPECT_EQ(a, c);
  EXPECT_NE(a, b);
  EXPECT_NE(a, plain);
}

TEST(Torchscript, SeedsDropoutHoweverRareItIs) {
  // A trial run would seldom see a difference.
  const SavedModule module(
      "def forward(self, x):\n  return torch.dropout(x, 0.001, self.training).matmul(self.weight) "
      "+ self.bias\n");
  const auto model = make_torchscript(module.settings(), data_of());
  std::vector<float> theta(model->size());
  model->initialise(1, theta);
  Batch batch;
  batch.size = 2000;
  batch.dense.assign(batch.size * std::size_t(kFeatures), 1.0f);
  std::vector<float> a(batch.size * std::size_t(kOutputs)), b(a.size());
  const Address address{.seed = 1, .purpose = Purpose::dropout};
  model->logits(theta, batch, {.dropout = &address}, a);
  model->logits(theta, batch, {.dropout = &address}, b);
  EXPECT_EQ(a, b);
}

TEST(Torchscript, RefusesRandomPredictions) {
  const SavedModule module(
      "def forward(self, x):\n  return torch.dropout(x, 0.5, True).matmul(self.weight) + "
      "self.bias\n");
  EXPECT_THROW(make_torchscript(module.settings(), data_of()), InputError);
}

TEST(Torchscript, RefusesBuffersThatTrainingChanges) {
  const SavedModule module(
      "def forward(self, x):\n  self.count.add_(1.0)\n  return x.matmul(self.weight) + "
      "self.bias\n");
  EXPECT_THROW(make_torchscript(module.settings(), data_of()), InputError);
}

TEST(Torchscript, RefusesOtherOutputsAndFilesThatAreNoModules) {
  const SavedModule module(kLinear);
  EXPECT_THROW(make_torchscript(module.settings(), data_of(7)), InputError);
  EXPECT_THROW(make_torchscript({.name = "torchscript", .path = "/nowhere/module.pt"}, data_of()),
               InputError);
  EXPECT_THROW(make_torchscript({.name = "torchscript"}, data_of()), InputError);
}

}  // namespace
}  // namespace fedep
