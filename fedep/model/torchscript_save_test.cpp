#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/script.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/model/torchscript.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

struct Case {
  ModelSettings settings;
  std::vector<std::int64_t> features;
};

DatasetInfo info_of(const std::vector<std::int64_t>& features) {
  DatasetInfo info;
  info.name = "some";
  info.features = features;
  info.outputs = 5;
  return info;
}

TEST(SaveTorchscript, AModuleComputesTheModelsLogits) {
  const TemporaryFolder folder;
  std::vector<Case> cases{{{.name = "linear"}, {7}},
                          {{.name = "resnet_small"}, {24, 24, 3}},
                          {{.name = "resnet_small", .norm = NormKind::per_position}, {13, 10, 1}},
                          {{.name = "resnet18", .norm = NormKind::per_position}, {24, 24, 3}}};
  for (const ModelRow& row : models()) {
    if (row.module_source != nullptr) cases.push_back({{.name = std::string(row.name)}, {9, 8, 2}});
  }
  for (const Case& one : cases) {
    SCOPED_TRACE(one.settings.name);
    const DatasetInfo info = info_of(one.features);
    const auto model = make_model(one.settings, info);
    std::vector<float> theta(model->size());
    fill_normal({.seed = 7}, theta);
    for (float& x : theta) x *= 0.1f;
    const auto path = folder.path() / "model.pt";
    save_torchscript(one.settings, model->layout(), theta, path);
    const auto loaded = make_torchscript({.name = "torchscript", .path = path.string()}, info);
    std::vector<float> own(loaded->size()), a(3 * 5), b(3 * 5);
    loaded->initialise(1, own);
    EXPECT_EQ(own.size(), theta.size());
    Batch batch;
    batch.size = 3;
    batch.dense.resize(3 * info.feature_count());
    fill_normal({.seed = 8}, batch.dense);
    model->logits(theta, batch, {}, a);
    loaded->logits(own, batch, {}, b);
    for (std::size_t i = 0; i < a.size(); ++i)
      EXPECT_NEAR(a[i], b[i], 1e-4f * (1 + std::abs(a[i])));
  }
}

TEST(SaveTorchscript, AModuleOfOnesOwnKeepsItsForward) {
  const TemporaryFolder folder;
  const auto first = folder.path() / "own.pt", second = folder.path() / "trained.pt";
  const ModelSettings linear{.name = "linear"};
  const DatasetInfo info = info_of({4});
  const Layout layout = make_model(linear, info)->layout();
  const std::vector<float> zeros(size_of(layout));
  save_torchscript(linear, layout, zeros, first);
  std::vector<float> theta(zeros.size()), came(zeros.size());
  fill_normal({.seed = 2}, theta);
  save_torchscript({.name = "torchscript", .path = first.string()}, layout, theta, second);
  make_torchscript({.name = "torchscript", .path = second.string()}, info)->initialise(1, came);
  EXPECT_EQ(came, theta);
}

// Also where the file before had other words about it, or a module has a parameter of that name.
TEST(SaveTorchscript, WhatIsSaidOfAModuleIsInExtraFiles) {
  const TemporaryFolder folder;
  const auto first = folder.path() / "own.pt", second = folder.path() / "trained.pt";
  torch::jit::Module own("own");
  own.register_parameter("temperature", torch::ones({2}), false);
  own.define("def forward(self, x):\n  return x * self.temperature\n");
  own.save(first.string(), {{"temperature", "7"}, {"note", "old"}});
  const std::vector<float> theta{3, 4};
  save_torchscript({.name = "torchscript", .path = first.string()}, {{"temperature", {2}}}, theta,
                   second, {{"temperature", "1.5"}});
  torch::jit::ExtraFilesMap about{{"temperature", ""}, {"note", ""}};
  const torch::jit::Module loaded = torch::jit::load(second.string(), torch::kCPU, about);
  EXPECT_EQ(about["temperature"], "1.5");
  EXPECT_EQ(about["note"], "");
  EXPECT_EQ(loaded.attr("temperature").toTensor()[1].item<float>(), 4);
}

TEST(SaveTorchscript, OtherTensorsAreRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "model.pt";
  const Layout layout{{"weight", {2, 5}}, {"offset", {5}}};
  const std::vector<float> theta(15);
  EXPECT_THROW(save_torchscript({.name = "linear"}, layout, theta, path), InputError);
  EXPECT_THROW(save_torchscript({.name = "unheard_of"}, layout, theta, path), InputError);
  EXPECT_THROW(save_torchscript({.name = "torchscript", .path = "/nowhere"}, layout, theta, path),
               InputError);
  const Layout good{{"weight", {2, 5}}, {"bias", {5}}};
  save_torchscript({.name = "linear"}, good, theta, path);
  EXPECT_THROW(
      save_torchscript({.name = "torchscript", .path = path.string()}, layout, theta, path),
      InputError);
  EXPECT_THROW(save_torchscript({.name = "linear"}, good, theta, "/nowhere/model.pt"), RunError);
}

}  // namespace
}  // namespace fedep
