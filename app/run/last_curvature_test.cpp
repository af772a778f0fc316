// A run that ends with a round of curvature: what commands tell of it, and that it is finished whenever the
// run was stopped.
#include "app/run/last_curvature.h"

#include <cmath>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "app/posterior/coefficients_command.h"
#include "app/posterior/evaluate_command.h"
#include "app/posterior/export_command.h"
#include "app/posterior/predict_file.h"
#include "app/posterior/saved_posterior.h"
#include "app/reproduce/finished_run.h"
#include "app/test_run.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"
#include "fedep/sim/curvature.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/curvature_file.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kWithCurvature =
    "algorithm = \"fed_ep\"\ncurvature = \"full\"\n[phase.inference]\nname = \"laplace\"\n"
    "family = \"diagonal\"\n";

ServerState state_in(const TestRun& run) {
  return read_checkpoint(run.checkpoint(), read_posterior(run.checkpoint()).layout).state;
}

TEST(LastCurvature, EveryCommandUsesItAndSaysSo) {
  const TestRun run(kWithCurvature);
  const ServerState state = state_in(run);
  EXPECT_FALSE(state.global.full());
  const Curvature kept = read_curvature(curvature_path(run.path())).curvature;
  EXPECT_EQ(kept.round, 6);
  const Eigen::MatrixXd sigma = covariance(posterior_of(kept, state.prior));

  const CoefficientTable table = read_coefficients(run.path(), "/nowhere");
  const HostVector<float> means = mean(state.global);
  for (std::size_t i = 0; i < 4; ++i) {
    const auto at = Eigen::Index(i);
    EXPECT_NEAR(table.rows[i].mean, means[i], 1e-6);
    EXPECT_NEAR(table.rows[i].deviation.value(), std::sqrt(sigma(at, at)), 1e-6);
  }
  EXPECT_THAT(coefficients_text(table), HasSubstr("a last round of curvature"));
  EXPECT_THAT(coefficients_text(table), Not(HasSubstr("uncorrelated")));
  const auto json = nlohmann::json::parse(coefficients_json(table));
  EXPECT_EQ(json["family"], "full");
  EXPECT_GT(json["curvature"]["distance_to_mode"], 0);

  const PredictedRows rows =
      predict_file(run.path(), run.write("new.csv", "age,sodium,unit\n70,140,ICU\n"), "", 5);
  EXPECT_THAT(rows.notes, Contains(HasSubstr("last round of curvature")));
  EXPECT_THAT(evaluate_run(run.path(), run.folder().path(), {}).notes,
              Contains(HasSubstr("last round of curvature")));
  EXPECT_EQ(export_safetensors(run.path(), run.folder().path() / "out").size(), 3u);
}

// The mean stays, and with it its temperature; draws are others.
TEST(LastCurvature, LeavesTheTemperatureOfTheMeanAlone) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  Recipe recipe = parse_recipe(ward_recipe(kWithCurvature));
  recipe.data.calibration_fraction = 0.4;
  recipe.evaluate.samples = 8;
  run_recipe(recipe, {.out = folder.path() / "run", .data = folder.path()});
  const Temperatures kept = read_posterior(folder.path() / "run").state.temperatures;
  EXPECT_GT(kept.point, 0);
  EXPECT_EQ(kept.marginal, 0);
  const EvaluateReport report = evaluate_run(folder.path() / "run", folder.path(), {});
  const Json metrics = evaluation_json(report)["metrics"];
  EXPECT_TRUE(metrics.contains("nll_calibrated"));
  EXPECT_TRUE(metrics.contains("nll_marginal"));
  EXPECT_FALSE(metrics.contains("nll_calibrated_marginal"));
  EXPECT_THAT(report.notes, Contains(HasSubstr("which came later")));
}

TEST(LastCurvature, RoundsAreThoseOfARunWithoutIt) {
  const TestRun with(kWithCurvature), without;
  EXPECT_EQ(state_in(with).global, state_in(without).global);
  EXPECT_FALSE(std::filesystem::exists(curvature_path(without.path())));
}

TEST(LastCurvature, AMeanThatRoundsHaveNotBroughtNearIsTold) {
  const TestRun run(std::string("cooldown = { after = 0, rounds = 1, to = 0.01 }\n") +
                    kWithCurvature);
  EXPECT_THAT(read_coefficients(run.path(), "").notes, Contains(HasSubstr("more rounds bring it")));
}

class Stopped : public testing::Test {
 protected:
  Stopped() {
    folder_.write("wards.csv", ward_table());
    options_ = {.out = folder_.path() / "run", .data = folder_.path()};
  }
  std::filesystem::path file() const { return curvature_path(options_.out); }
  void resume(const Recipe& recipe) {
    RunRecipeOptions options = options_;
    options.resume = true;
    run_recipe(recipe, options);
  }
  std::string refusal() {
    return message_of<InputError>([&] { read_coefficients(options_.out, ""); });
  }

  const Recipe recipe_ = parse_recipe(ward_recipe(kWithCurvature));
  TemporaryFolder folder_;
  RunRecipeOptions options_;
};

TEST_F(Stopped, BetweenTheLastRoundAndTheCurvatureFinishesToTheSameBytes) {
  const TestRun whole(kWithCurvature);
  const std::vector<std::byte> bytes = read_file(curvature_path(whole.path()));
  run_recipe(recipe_, options_);
  std::filesystem::remove(file());
  EXPECT_THAT(read_coefficients(options_.out, "").notes,
              Contains(HasSubstr("the last round of curvature is missing")));
  EXPECT_FALSE(is_finished(recipe_, options_.out));
  resume(recipe_);
  EXPECT_EQ(read_file(file()), bytes);
  EXPECT_TRUE(is_finished(recipe_, options_.out));
  // Once it is there it is left alone.
  const auto written = std::filesystem::last_write_time(file());
  resume(recipe_);
  EXPECT_EQ(std::filesystem::last_write_time(file()), written);
}

TEST_F(Stopped, InItIsInterruptedAndHasNoFile) {
  run_recipe(recipe_, options_);
  std::filesystem::remove(file());
  const auto task = make_task(recipe_, folder_.path());
  const SavedPosterior saved = read_posterior(options_.out);
  const RunDirectory directory = RunDirectory::reopen(options_.out, saved.recipe);
  int asked = 0;
  EXPECT_FALSE(
      finish_curvature(saved.recipe, *task, directory, saved.state, [&] { return ++asked == 5; }));
  EXPECT_FALSE(std::filesystem::exists(file()));
}

TEST_F(Stopped, AndAskedForItOnlyNowItHasIt) {
  Recipe without = recipe_;
  without.phases[0].curvature = CurvatureChoice::none;
  run_recipe(without, options_);
  EXPECT_FALSE(std::filesystem::exists(file()));
  resume(recipe_);
  EXPECT_TRUE(read_coefficients(options_.out, "").curvature.has_value());
}

TEST_F(Stopped, WithMoreRoundsHasThatOfItsNewEnd) {
  run_recipe(recipe_, options_);
  Recipe longer = recipe_;
  longer.phases[0].rounds = 9;
  resume(longer);
  EXPECT_EQ(read_curvature(file()).curvature.round, 9);
  EXPECT_TRUE(read_coefficients(options_.out, "").curvature.has_value());
}

TEST_F(Stopped, AFileOfAnotherRunOrADamagedOneIsRefusedByName) {
  run_recipe(recipe_, options_);
  const std::vector<std::byte> own = read_file(file());
  std::vector<std::byte> damaged = own;
  damaged.back() ^= std::byte(1);
  replace_file(file(), damaged);
  EXPECT_THAT(refusal(), HasSubstr("curvature.safetensors"));
  EXPECT_THROW(resume(recipe_), InputError);

  write_curvature(file(), read_curvature((replace_file(file(), own), file())).curvature, 17);
  EXPECT_THAT(refusal(), HasSubstr("must have been taken at checkpoint-6.safetensors"));
  EXPECT_THAT(message_of<InputError>([&] { resume(recipe_); }),
              HasSubstr("must have been taken at checkpoint-6.safetensors"));
  EXPECT_NE(read_file(file()), own);  // nothing is touched

  // One of another round is not this checkpoint's and not read.
  Curvature earlier = read_curvature(file()).curvature;
  earlier.round = 3;
  write_curvature(file(), earlier, 17);
  EXPECT_FALSE(read_coefficients(options_.out, "").curvature.has_value());
}

}  // namespace
}  // namespace fedep
