// TorchScript modules of a cohort against the same modules on a core: a step of several clients
// with different weights and batches is the step of each alone, and a captured one has the bits of
// one that is not.
#include "fedep/cuda/network/cohort_torchscript.h"

#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/device_data.h"
#include "fedep/cuda/device/step_graph.h"
#include "fedep/cuda/network/test_cohort_model.h"
#include "fedep/message/error.h"
#include "fedep/model/layer/loss.h"
#include "fedep/model/torchscript.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr std::size_t kClients = 3, kRows = 7, kOutputs = 4;
constexpr std::array<std::int32_t, kClients> kCounts{7, 0, 4};

struct Script {
  std::vector<std::int64_t> features;
  std::vector<std::pair<std::string, std::vector<std::int64_t>>> parameters;
  std::string forward;
};

// Of an odd number of weights each, so that tensors begin anywhere; one parameter has no gradient.
Script perceptron(const std::string& input = "x") {
  return {{5},
          {{"w1", {5, 9}}, {"b1", {9}}, {"unused", {3}}, {"w2", {9, 4}}, {"b2", {4}}},
          "def forward(self, x):\n  h = torch.tanh((" + input +
              ").matmul(self.w1) + self.b1)\n  return h.matmul(self.w2) + self.b2\n"};
}

Script convolution() {
  return {{8, 8, 3},
          {{"kernel", {5, 3, 3, 3}}, {"bias", {5}}, {"w", {80, 4}}, {"b", {4}}},
          "def forward(self, x):\n"
          "  h = torch.conv2d(x.permute(0, 3, 1, 2), self.kernel, self.bias, [1, 1], [1, 1])\n"
          "  h = torch.avg_pool2d(torch.tanh(h), [2, 2])\n"
          "  return h.flatten(1).matmul(self.w) + self.b\n"};
}

Script with_dropout() { return perceptron("torch.dropout(x, 0.5, self.training)"); }

// Written to a file, which is gone when the test is.
class SavedScript {
 public:
  explicit SavedScript(const Script& script) : script_(script) {
    torch::manual_seed(4);
    torch::jit::Module module("script");
    for (const auto& [name, shape] : script.parameters) {
      module.register_parameter(name, 0.3 * torch::randn(shape), false);
    }
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(script.forward);
    module.save(path_.string());
  }
  ~SavedScript() { std::filesystem::remove(path_); }
  SavedScript(const SavedScript&) = delete;
  SavedScript& operator=(const SavedScript&) = delete;

  ModelSettings settings() const { return {.name = "torchscript", .path = path_.string()}; }
  DatasetInfo info() const {
    DatasetInfo info;
    info.name = "test";
    info.features = script_.features;
    info.outputs = kOutputs;
    return info;
  }

 private:
  Script script_;
  static std::filesystem::path new_path() {
    static int made = 0;
    return std::filesystem::temp_directory_path() /
           ("fedep_cohort_torchscript_test_" + std::to_string(::getpid()) + "_" +
            std::to_string(made++) + ".pt");
  }

  std::filesystem::path path_ = new_path();
};

template <class T>
DeviceArray<T> on_gpu(const std::vector<T>& values) {
  return DeviceArray<T>(std::span<const T>(values));
}

// Weights, examples, priors and addresses of three clients, on both sides.
struct World {
  explicit World(const Script& script, ProductPrecision precision = ProductPrecision::float32)
      : saved(script),
        info(saved.info()),
        model(make_torchscript(saved.settings(), info)),
        cohort(make_cohort_torchscript(saved.settings(), info, {kClients, kRows, precision})),
        size(model->size()),
        stride((size + 31) / 32 * 32),
        theta(normals(kClients * stride, 1, 0.3f)),
        momentum(normals(kClients * stride, 2, 0.1f)),
        eta(normals(kClients * stride, 3, 1.0f)),
        features(normals(kClients * kRows * info.feature_count(), 4, 1.0f)) {
    Stream stream({.seed = 3});
    for (std::size_t i = 0; i < kClients * kRows; ++i) {
      labels.push_back(std::int32_t(stream.below(kOutputs)));
    }
    std::vector<StreamAddress> addresses, label_streams;
    for (std::size_t c = 0; c < kClients; ++c) {
      addresses.push_back(stream_address(address_of(Purpose::dropout, c)));
      label_streams.push_back(stream_address(address_of(Purpose::labels, c)));
    }
    d_theta = on_gpu(theta);
    d_momentum = on_gpu(momentum);
    d_eta = on_gpu(eta);
    d_lambda = on_gpu(lambda);
    d_per_example = on_gpu(per_example);
    d_features = on_gpu(features);
    d_labels = on_gpu(labels);
    d_counts = DeviceArray<std::int32_t>(std::span<const std::int32_t>(kCounts));
    d_addresses = on_gpu(addresses);
    d_label_streams = on_gpu(label_streams);
    d_loss = DeviceArray<double>(kClients);
    d_loss.zero();
  }

  static Address address_of(Purpose purpose, std::size_t c) {
    return {.seed = 5, .purpose = purpose, .round = 2, .client = c, .step = 9};
  }
  CohortBatch batch() const {
    return {kClients,        kRows,           d_features.data(),
            d_labels.data(), d_counts.data(), d_addresses.data()};
  }
  CohortChain chain() {
    return {.theta = d_theta.data(),
            .momentum = d_momentum.data(),
            .stride = stride,
            .eta = d_eta.data(),
            .lambda = d_lambda.data(),
            .per_example = d_per_example.data(),
            .lr = 0.5f,
            .mu = 0.9f};
  }
  Batch batch_of(std::size_t c) const {
    Batch out;
    out.size = std::size_t(kCounts[c]);
    const auto first = features.begin() + std::ptrdiff_t(c * kRows * info.feature_count());
    out.dense.assign(first, first + std::ptrdiff_t(out.size * info.feature_count()));
    out.labels.assign(labels.begin() + std::ptrdiff_t(c * kRows),
                      labels.begin() + std::ptrdiff_t(c * kRows + out.size));
    return out;
  }
  std::span<const float> row(const std::vector<float>& rows, std::size_t c) const {
    return std::span(rows).subspan(c * stride, size);
  }
  // Back to where everything began.
  void restart() {
    d_theta.upload(theta);
    d_momentum.upload(momentum);
    d_loss.zero();
  }

  SavedScript saved;
  DatasetInfo info;
  std::unique_ptr<Model> model;
  std::unique_ptr<CohortModel> cohort;
  std::size_t size, stride;
  std::vector<float> theta, momentum, eta, features;
  std::vector<float> lambda{3.0f, 4.0f, 5.0f}, per_example{0.1f, 0.2f, 0.05f};
  std::vector<std::int32_t> labels;
  DeviceArray<float> d_theta, d_momentum, d_eta, d_lambda, d_per_example, d_features;
  DeviceArray<std::int32_t> d_labels, d_counts;
  DeviceArray<StreamAddress> d_addresses, d_label_streams;
  DeviceArray<double> d_loss;
};

class CohortTorchscriptTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
  static void for_each_case(const std::function<void(World&, double)>& check) {
    for (const Script& script : {perceptron(), convolution()}) {
      for (const auto& [precision, tolerance] :
           {std::pair{ProductPrecision::float32, 2e-5}, std::pair{ProductPrecision::tf32, 1e-2}}) {
        SCOPED_TRACE(script.forward);
        SCOPED_TRACE(tolerance);
        World world(script, precision);
        check(world, tolerance);
      }
    }
  }
};

TEST_F(CohortTorchscriptTest, AStepOfManyIsTheStepOfEach) {
  for (const bool summed : {false, true}) {
    for_each_case([&](World& world, double tolerance) {
      ASSERT_EQ(world.cohort->size(), world.size);
      CohortChain chain = world.chain();
      chain.loss_times_batch = summed;
      world.cohort->train_step(world.batch(), chain, world.d_loss.data());
      const std::vector<float> theta_after = world.d_theta.download(),
                               momentum_after = world.d_momentum.download();
      const std::vector<double> losses = world.d_loss.download();
      for (std::size_t c = 0; c < kClients; ++c) {
        SCOPED_TRACE(c);
        const std::span<const float> before = world.row(world.theta, c);
        std::vector<float> theta(before.begin(), before.end()), gradient(world.size);
        const std::span<const float> momentum = world.row(world.momentum, c);
        std::vector<float> m(momentum.begin(), momentum.end());
        if (kCounts[c] == 0) {  // rests, in every bit
          EXPECT_EQ(losses[c], 0);
          const std::span<const float> found = world.row(theta_after, c);
          EXPECT_EQ(std::vector<float>(found.begin(), found.end()), theta);
          continue;
        }
        const Address dropout = World::address_of(Purpose::dropout, c);
        const double loss =
            world.model->loss_gradient(theta, world.batch_of(c), {.dropout = &dropout}, gradient);
        for (std::size_t i = 0; i < world.size; ++i) {
          if (summed) gradient[i] *= float(kCounts[c]);
          m[i] =
              chain.mu * m[i] + gradient[i] +
              (world.lambda[c] * theta[i] - world.eta[c * world.stride + i]) * world.per_example[c];
          theta[i] -= chain.lr * m[i];
        }
        EXPECT_NEAR(losses[c], loss, tolerance * (1 + loss));
        EXPECT_LT(relative_error(world.row(momentum_after, c), m), tolerance);
        EXPECT_LT(relative_error(world.row(theta_after, c), theta), tolerance);
        // The gradient's own error, not hidden behind larger terms.
        std::vector<float> found(world.size);
        for (std::size_t i = 0; i < world.size; ++i) {
          found[i] = gradient[i] + world.row(momentum_after, c)[i] - m[i];
        }
        EXPECT_LT(relative_error(found, gradient), 5 * tolerance);
      }
    });
  }
}

TEST_F(CohortTorchscriptTest, SquaredGradientsAreThoseOfEach) {
  for (const bool drawn : {false, true}) {
    for_each_case([&](World& world, double tolerance) {
      if (drawn && tolerance > 1e-3) return;  // other labels may be drawn from other logits
      DeviceArray<float> sum(kClients * world.stride);
      sum.zero();
      world.cohort->add_squared_gradients(world.batch(), world.d_theta.data(), world.stride,
                                          drawn ? world.d_label_streams.data() : nullptr, nullptr,
                                          {.sum = sum.data()});
      const std::vector<float> sums = sum.download();
      for (std::size_t c = 0; c < kClients; ++c) {
        std::vector<float> expected(world.size);
        if (kCounts[c] > 0) {
          const std::span<const float> theta = world.row(world.theta, c);
          Batch batch = world.batch_of(c);
          if (drawn) {
            std::vector<float> logits(batch.size * kOutputs);
            world.model->logits(theta, batch, {}, logits);
            batch.labels = sample_labels(TargetKind::label, logits, kOutputs,
                                         World::address_of(Purpose::labels, c))
                               .labels;
          }
          world.model->add_squared_gradients(theta, batch, {}, {}, expected);
          for (float& x : expected) x /= float(kCounts[c]);
        }
        EXPECT_LT(relative_error(world.row(sums, c), expected), 5 * tolerance) << c;
      }
    });
  }
}

TEST_F(CohortTorchscriptTest, LogitsAreThoseOfEach) {
  for_each_case([&](World& world, double tolerance) {
    DeviceArray<float> out(kClients * kRows * kOutputs);
    CohortBatch batch = world.batch();
    batch.dropout = nullptr;
    for (const std::size_t stride : {world.stride, std::size_t(0)}) {  // 0: all have the first's
      out.zero();
      world.cohort->logits(batch, world.d_theta.data(), stride, out.data());
      const std::vector<float> logits = out.download();
      for (std::size_t c = 0; c < kClients; ++c) {
        const Batch own = world.batch_of(c);
        if (own.size == 0) continue;
        std::vector<float> expected(own.size * kOutputs);
        world.model->logits(world.row(world.theta, stride == 0 ? 0 : c), own, {}, expected);
        const auto found = std::span(logits).subspan(c * kRows * kOutputs, expected.size());
        EXPECT_LT(relative_error(found, expected), tolerance) << c;
      }
    }
  });
}

TEST_F(CohortTorchscriptTest, ACapturedStepHasTheBitsOfOneThatIsNot) {
  for (const Script& script : {perceptron(), convolution(), with_dropout()}) {
    SCOPED_TRACE(script.forward);
    World world(script, ProductPrecision::tf32);
    DeviceArray<float> sum(kClients * world.stride);
    sum.zero();
    const auto step = [&] {
      world.cohort->train_step(world.batch(), world.chain(), world.d_loss.data());
      world.cohort->add_squared_gradients(world.batch(), world.d_theta.data(), world.stride,
                                          world.d_label_streams.data(), world.d_addresses.data(),
                                          {.sum = sum.data()});
    };
    for (int i = 0; i < 3; ++i) step();
    const std::vector<float> theta = world.d_theta.download(), sums = sum.download();
    const std::vector<double> losses = world.d_loss.download();
    EXPECT_NE(theta, world.theta);
    const auto expect_same = [&] {
      EXPECT_EQ(world.d_theta.download(), theta);
      EXPECT_EQ(world.d_loss.download(), losses);
      EXPECT_EQ(sum.download(), sums);
    };
    const StepGraph one(step), three(step, 3);
    world.restart();
    sum.zero();
    for (int i = 0; i < 3; ++i) one.launch();
    expect_same();
    world.restart();
    sum.zero();
    three.launch();
    expect_same();
  }
}

// Captured work reads addresses when it is launched, and keeps its memory to itself.
TEST_F(CohortTorchscriptTest, ACapturedStepFollowsItsAddresses) {
  World world(with_dropout());
  const std::size_t outputs = kClients * kRows * kOutputs;
  DeviceArray<float> out(outputs);
  const auto pass = [&](const StreamAddress* dropout) {
    CohortBatch batch = world.batch();
    batch.dropout = dropout;
    world.cohort->logits(batch, world.d_theta.data(), world.stride, out.data());
    return out.download();
  };
  const std::vector<float> first = pass(world.d_addresses.data()), plain = pass(nullptr);
  EXPECT_NE(first, plain);
  EXPECT_EQ(pass(world.d_addresses.data()), first);
  std::vector<StreamAddress> others = world.d_addresses.download();
  for (StreamAddress& address : others) ++address.step;
  const DeviceArray<StreamAddress> d_others = on_gpu(others);
  const std::vector<float> second = pass(d_others.data());
  EXPECT_NE(second, first);
  const StepGraph captured(
      [&] { world.cohort->logits(world.batch(), world.d_theta.data(), world.stride, out.data()); });
  captured.launch();
  EXPECT_EQ(out.download(), first);
  const std::vector<StreamAddress> own = world.d_addresses.download();
  world.d_addresses.upload(others);
  captured.launch();
  EXPECT_EQ(out.download(), second);
  pass(nullptr);  // something else in between
  world.d_addresses.upload(own);
  captured.launch();
  EXPECT_EQ(out.download(), first);
}

// Half the inputs are dropped, whatever the seed; those that stay are doubled.
TEST_F(CohortTorchscriptTest, DropoutDropsAsManyAsItSays) {
  constexpr std::size_t kMany = 2000;
  const SavedScript saved({{4},
                           {{"scale", {1}}},
                           "def forward(self, x):\n  return torch.dropout(x, 0.5, self.training) * "
                           "self.scale\n"});
  const auto cohort = make_cohort_torchscript(saved.settings(), saved.info(),
                                              {1, kMany, ProductPrecision::float32});
  const DeviceArray<float> x = on_gpu(std::vector<float>(kMany * 4, 1.0f)),
                           theta = on_gpu(std::vector<float>{1.0f});
  const DeviceArray<std::int32_t> labels = on_gpu(std::vector<std::int32_t>(kMany)),
                                  counts = on_gpu(std::vector<std::int32_t>{kMany});
  const DeviceArray<StreamAddress> dropout =
      on_gpu(std::vector<StreamAddress>{stream_address({.seed = 1, .purpose = Purpose::dropout})});
  DeviceArray<float> out(kMany * 4);
  cohort->logits({1, kMany, x.data(), labels.data(), counts.data(), dropout.data()}, theta.data(),
                 0, out.data());
  std::size_t kept = 0;
  for (const float value : out.download()) {
    EXPECT_TRUE(value == 0.0f || value == 2.0f) << value;
    kept += value != 0.0f;
  }
  // Five standard deviations of a binomial.
  EXPECT_NEAR(double(kept), kMany * 4 / 2.0, 5 * std::sqrt(kMany * 4 / 4.0));
}

TEST_F(CohortTorchscriptTest, RefusesModulesThatCannotBeCapturedOrMixExamples) {
  const auto reason = [](const Script& script) -> std::string {
    const SavedScript saved(script);
    EXPECT_NO_THROW(make_torchscript(saved.settings(), saved.info()));  // fine on a CPU
    try {
      make_cohort_torchscript(saved.settings(), saved.info(), {1, 4, ProductPrecision::tf32});
    } catch (const InputError& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(reason(perceptron("x - x.mean([0], True)")).find("affect one another"),
            std::string::npos);
  EXPECT_NE(reason(perceptron("x if bool(x.sum() > 0.0) else -x")).find("on the GPU"),
            std::string::npos);
  // Nothing of that is left behind.
  World world(perceptron());
  const StepGraph step(
      [&] { world.cohort->train_step(world.batch(), world.chain(), world.d_loss.data()); });
  step.launch();
  EXPECT_NE(world.d_theta.download(), world.theta);
}

TEST_F(CohortTorchscriptTest, RefusesBatchesBeyondItsCapacity) {
  World world(perceptron());
  CohortBatch batch = world.batch();
  batch.rows = kRows + 1;
  EXPECT_THROW(world.cohort->train_step(batch, world.chain(), world.d_loss.data()), InputError);
}

}  // namespace
}  // namespace fedep
