#include "app/posterior/export_command.h"

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/saved_posterior.h"
#include "app/test_run.h"
#include "fedep/message/error.h"
#include "fedep/sim/score/predictive.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

TEST(Export, WritesMeansAndStandardDeviationsInTheModelsShapes) {
  const TestRun run;
  const auto written = export_safetensors(run.path(), run.folder().path() / "out");
  ASSERT_EQ(written.size(), 2u);
  const SafetensorsFile means = read_safetensors(written[0]), stds = read_safetensors(written[1]);
  const SavedPosterior saved = read_posterior(run.path());
  const HostVector<float> mean = point_estimate(saved.state);
  const HostVector<float> lambda = saved.state.global.lambda_full();
  EXPECT_EQ(means.tensor("weight").shape, (std::vector<std::int64_t>{3, 1}));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(means.get<float>("weight")[i], mean[i]);
    EXPECT_NEAR(stds.get<float>("weight")[i], 1 / std::sqrt(lambda[i]), 1e-6f);
  }
  EXPECT_EQ(means.get<float>("bias")[0], mean[3]);
  EXPECT_EQ(means.metadata.at("algorithm"), "fed_ep");
}

TEST(Export, APointEstimateHasNoStandardDeviations) {
  const TestRun run(kFedAvg);
  EXPECT_EQ(export_safetensors(run.checkpoint(), run.folder().path() / "out").size(), 1u);
}

TEST(Export, DrawsHaveThePosteriorsMomentsAndTheModelsShapes) {
  const TestRun run;
  constexpr int kDraws = 4000;
  const auto file = export_draws(run.path(), run.folder().path() / "out", kDraws);
  const SafetensorsFile draws = read_safetensors(file);
  EXPECT_EQ(draws.tensor("weight").shape, (std::vector<std::int64_t>{kDraws, 3, 1}));
  EXPECT_EQ(draws.tensor("bias").shape.front(), kDraws);
  const SavedPosterior saved = read_posterior(run.path());
  const HostVector<float> mean = point_estimate(saved.state);
  const HostVector<float> variances = variance(saved.state.global);
  const auto weights = draws.get<float>("weight");
  for (std::size_t j = 0; j < 3; ++j) {
    double sum = 0, squares = 0;
    for (std::size_t i = 0; i < kDraws; ++i) {
      const double off = double(weights[3 * i + j]) - double(mean[j]);
      sum += off;
      squares += off * off;
    }
    const double sd = std::sqrt(double(variances[j]));
    EXPECT_NEAR(sum / kDraws, 0, 5 * sd / std::sqrt(double(kDraws)));
    EXPECT_NEAR(std::sqrt(squares / kDraws) / sd, 1, 0.06);
  }
  const HostVector<float> third =
      draw_of(saved.state.global, saved.recipe.seed, saved.state.round, 2);
  for (std::size_t j = 0; j < 3; ++j) EXPECT_EQ(weights[6 + j], third[j]);
  EXPECT_EQ(draws.get<float>("bias")[2], third[3]);
}

TEST(Export, RefusesDrawsWhereThereIsNoPosteriorAndTooManyOfThem) {
  const TestRun point(kFedAvg), run;
  const auto out = run.folder().path() / "out";
  EXPECT_THAT(message_of<InputError>([&] { export_draws(point.path(), out, 5); }),
              testing::HasSubstr("estimates no uncertainty"));
  EXPECT_THAT(message_of<InputError>([&] { export_draws(run.path(), out, 1 << 30); }),
              testing::HasSubstr("must be at most"));
}

TEST(Export, LeavesNothingOfAnExportBefore) {
  const TestRun run, point(kFedAvg);
  const auto out = run.folder().path() / "out";
  export_safetensors(run.path(), out);
  const auto draws = export_draws(run.path(), out, 5);
  const auto exported = [&](const std::filesystem::path& path, const std::string& options) {
    Command app("fedep", "fedep");
    int exit_code = 0;
    add_export_command(app, exit_code);
    testing::internal::CaptureStdout();
    try {
      app.parse("export " + path.string() + " --out " + out.string() + options);
    } catch (...) {
      testing::internal::GetCapturedStdout();
      throw;
    }
    return testing::internal::GetCapturedStdout();
  };
  // Refused before anything is written.
  const auto mean = read_file(out / "mean.safetensors");
  EXPECT_THROW(exported(point.path(), " --draws 5"), InputError);
  EXPECT_EQ(read_file(out / "mean.safetensors"), mean);
  EXPECT_TRUE(std::filesystem::exists(draws));
  exported(point.path(), "");
  EXPECT_FALSE(std::filesystem::exists(draws));
  EXPECT_FALSE(std::filesystem::exists(out / "std.safetensors"));
}

TEST(Export, AModuleNeedsTorchAndSaysSo) {
  const TestRun run;
  const auto out = run.folder().path() / "out";
#ifdef FEDEP_WITH_TORCH
  EXPECT_TRUE(std::filesystem::exists(export_modules(run.path(), out).at(0)));
#else
  EXPECT_THAT(message_of<InputError>([&] { export_modules(run.path(), out); }),
              testing::HasSubstr("FEDEP_WITH_TORCH=ON"));
#endif
}

}  // namespace
}  // namespace fedep
