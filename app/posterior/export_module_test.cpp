// What `fedep export --format torchscript` leaves, as a program with torch reads it.
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <torch/script.h>

#include "app/posterior/export_command.h"
#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

struct Exported {
  HostVector<float> parameters;
  std::string temperature, format;
};

Exported load(const fs::path& path) {
  torch::jit::ExtraFilesMap about{{"temperature", ""}, {"format", ""}};
  const torch::jit::Module module = torch::jit::load(path.string(), torch::kCPU, about);
  std::vector<float> values;
  for (const torch::Tensor& tensor : module.parameters()) {
    const torch::Tensor flat = tensor.flatten();
    values.insert(values.end(), flat.data_ptr<float>(), flat.data_ptr<float>() + flat.numel());
  }
  return {HostVector<float>(values), about["temperature"], about["format"]};
}

TEST(ExportModules, AreOfTheMeanAndOfTheAverageEachWithItsTemperature) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kFedAvg));
  recipe.data.calibration_fraction = 0.4;
  recipe.phases[0].average = AverageSettings{.kind = AverageKind::exponential, .rounds = 3};
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const fs::path out = folder.path() / "out";
  ASSERT_EQ(export_modules(folder.path() / "run", out),
            (std::vector{out / "model.pt", out / "average.pt"}));

  const ServerState state = read_posterior(folder.path() / "run").state;
  ASSERT_NE(state.temperatures.point, state.temperatures.average);
  const Exported mean = load(out / "model.pt"), average = load(out / "average.pt");
  EXPECT_EQ(mean.parameters, point_estimate(state));
  EXPECT_EQ(std::stod(mean.temperature), state.temperatures.point);
  EXPECT_EQ(mean.format, "fedep.mean");
  EXPECT_EQ(average.parameters, state.average.mean);
  EXPECT_EQ(std::stod(average.temperature), state.temperatures.average);
  EXPECT_EQ(average.format, "fedep.average");
}

TEST(ExportModules, HaveNoTemperatureThatNobodyFittedAndNoAverageOfAnotherRun) {
  const TestRun run;
  const fs::path stale = run.write("average.pt", "another run's");
  export_modules(run.path(), run.folder().path());
  EXPECT_FALSE(fs::exists(stale));
  EXPECT_EQ(load(run.folder().path() / "model.pt").temperature, "");
}

}  // namespace
}  // namespace fedep
