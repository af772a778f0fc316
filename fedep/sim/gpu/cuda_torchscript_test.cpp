// Rounds with a TorchScript module on the GPU against rounds with it on one core, as
// cuda_agreement_test.cpp has them for models with kernels of their own.
#include <gtest/gtest.h>
#include <torch/script.h>
#include <unistd.h>

#include <filesystem>

#include "fedep/cuda/device/device.h"
#include "fedep/sim/gpu/cuda_evaluation.h"
#include "fedep/sim/gpu/cuda_place.h"
#include "fedep/sim/gpu/test_cuda_agreement.h"

namespace fedep {
namespace {

using V = HostVector<float>;

// Modules for images of 16x16x3 and four classes. Smooth: no rectifier that chooses otherwise,
// because two numbers were equal to rounding.
const std::string kPerceptron =
    "def forward(self, x):\n"
    "  h = torch.tanh(x.flatten(1).matmul(self.w1) + self.b1)\n"
    "  return torch.dropout(h, self.rate, self.training).matmul(self.w2) + self.b2\n";
const std::string kConvolution =
    "def forward(self, x):\n"
    "  h = torch.conv2d(x.permute(0, 3, 1, 2), self.kernel, self.bias, [2, 2], [1, 1])\n"
    "  h = torch.avg_pool2d(torch.tanh(h), [2, 2])\n"
    "  return h.flatten(1).matmul(self.w3) + self.b3\n";

// A file with the module, which is gone when the test is.
class SavedModule {
 public:
  explicit SavedModule(const std::string& forward, double dropout = 0) {
    torch::manual_seed(6);
    torch::jit::Module module("module");
    const auto add = [&](const char* name, std::vector<std::int64_t> shape, double scale) {
      module.register_parameter(name, scale * torch::randn(shape), false);
    };
    if (forward == kPerceptron) {
      add("w1", {768, 15}, 0.04);
      add("b1", {15}, 0.1);
      add("w2", {15, 4}, 0.3);
      add("b2", {4}, 0.1);
    } else {
      add("kernel", {6, 3, 3, 3}, 0.2);
      add("bias", {6}, 0.1);
      add("w3", {96, 4}, 0.1);
      add("b3", {4}, 0.1);
    }
    module.register_attribute("rate", c10::FloatType::get(), dropout);
    module.register_attribute("training", c10::BoolType::get(), true);
    module.define(forward);
    module.save(path_.string());
  }
  ~SavedModule() { std::filesystem::remove(path_); }
  SavedModule(const SavedModule&) = delete;
  SavedModule& operator=(const SavedModule&) = delete;

  Recipe recipe(std::string_view algorithm, std::string_view method) const {
    Recipe recipe = recipe_for("torchscript", algorithm, method);
    recipe.model.path = path_.string();
    return recipe;
  }

 private:
  static std::filesystem::path new_path() {
    static int made = 0;
    return std::filesystem::temp_directory_path() /
           ("fedep_cuda_torchscript_test_" + std::to_string(::getpid()) + "_" +
            std::to_string(made++) + ".pt");
  }

  std::filesystem::path path_ = new_path();
};

class CudaTorchscript : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(CudaTorchscript, ThreeRoundsEndWhereTheCpuEnds) {
  const std::vector<std::pair<std::string, std::string>> kinds{{"fed_avg", ""},
                                                               {"fed_pa", "sample_moments"},
                                                               {"fed_ep", "scaled_identity"},
                                                               {"fed_ep", "laplace"},
                                                               {"fed_sep", "ngvi"}};
  for (const std::string& forward : {kPerceptron, kConvolution}) {
    const SavedModule module(forward);
    for (const auto& [algorithm, method] : kinds) {
      SCOPED_TRACE(forward + algorithm + " " + method);
      World world("torchscript", module.recipe(algorithm, method));
      expect_agreement(world, method == "laplace" || method == "ngvi");
    }
  }
}

// Dropout's masks are not the CPU's, but they too depend on their addresses alone.
TEST_F(CudaTorchscript, ARoundRepeatsInEveryBitWhateverWasPlayedBefore) {
  const SavedModule module(kPerceptron, 0.3), without_dropout(kPerceptron);
  for (const char* const method : {"scaled_identity", "laplace", "ngvi"}) {
    World world("torchscript", module.recipe("fed_ep", method));
    World other("torchscript", without_dropout.recipe("fed_ep", method));
    const Ended once = world.on_gpu(ProductPrecision::tf32, nullptr);
    const Ended undropped = other.on_gpu(ProductPrecision::tf32, nullptr);
    const Ended again = world.on_gpu(ProductPrecision::tf32, nullptr);
    EXPECT_EQ(once.state, again.state) << method;
    EXPECT_FALSE(once.state == undropped.state) << method;
  }
}

TEST_F(CudaTorchscript, EvaluationHasTheScoresOfTheCpu) {
  const SavedModule module(kConvolution);
  World world("torchscript", module.recipe("fed_sep", "laplace"));
  V theta(world.model().size());
  world.model().initialise(1, theta.span());
  Evaluation cpu(world.data(), make_model(world.recipe().model, world.data().info()));
  CudaEvaluation gpu(world.data(), world.recipe(), ProductPrecision::float32);
  const Message q = from_mean(theta, 400.0f);
  const MarginalDraws draws{.seed = 3, .round = 8, .samples = 4};
  const auto expect_equal = [](const Metrics& found, const Metrics& expected) {
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].first, expected[i].first);
      EXPECT_NEAR(found[i].second, expected[i].second, 1e-5) << found[i].first;
    }
  };
  for (int time = 0; time < 2; ++time) {  // the second from captured graphs
    expect_equal(gpu.at(to_device(theta)), cpu.at(theta));
    expect_equal(gpu.marginal(to_device(q), draws), cpu.marginal(q, draws));
  }
}

TEST(CudaRemark, IsMadeOfTorchscriptAlone) {
  Recipe recipe;
  recipe.model.name = "cnn";
  EXPECT_EQ(cuda_remark(recipe), "");
  recipe.model.name = "torchscript";
  EXPECT_NE(cuda_remark(recipe).find("slower path"), std::string::npos);
  EXPECT_EQ(cuda_remark(recipe).find('\n'), std::string::npos);
}

}  // namespace
}  // namespace fedep
