// model.noise, the standard deviation of an outcome that is a number, through whole runs and what is
// read from them. Columns are ±1 in a factorial design, so that they are scaled already and XᵀX = n I:
// the posterior of the pooled rows has a closed form, and it is in FedEP's diagonal family.

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/coefficients_command.h"
#include "app/evaluate_command.h"
#include "app/predict_command.h"
#include "app/run_recipe.h"
#include "app/run_warnings.h"
#include "app/saved_posterior.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr double kNoise = 4;

struct Stay {
  double unit, sex, days;
};

// 3 × 80 stays in eighths of days.
std::vector<Stay> some_stays() {
  Stream stream({.seed = 21});
  std::vector<Stay> stays;
  for (int i = 0; i < 240; ++i) {
    const double unit = i & 1 ? 1 : -1, sex = i & 2 ? 1 : -1;
    const double days = 7 + 3 * unit - sex + kNoise * stream.normal();
    stays.push_back({unit, sex, std::round(8 * days) / 8});
  }
  return stays;
}

// Days over `divisor`, a power of two.
std::string table_of(const std::vector<Stay>& stays, double divisor) {
  std::string text = "hospital,days,unit,sex\n";
  for (std::size_t i = 0; i < stays.size(); ++i) {
    text += fmt::format("{},{},{},{}\n", "ABC"[i / 80], stays[i].days / divisor, stays[i].unit,
                        stays[i].sex);
  }
  return text;
}

Recipe recipe_of(const std::string& inference) {
  return parse_recipe(R"(
seed = 3
[data]
name = "tabular"
path = "stays.csv"
client_column = "hospital"
label_column = "days"
label = "number"
[client]
epochs = 100
batch = 20
optimizer = { name = "sgd", lr = 0.02, momentum = 0.9 }
[server]
clients_per_round = 3
prior = { mean = 0.0, precision = 0.5 }
damping = 0.5
[[phase]]
algorithm = "fed_ep"
rounds = 8
factors = "flat"
[phase.inference]
langevin = true
)" + inference);
}

// A run of the recipe on the table, gone with this object.
class NoiseRun {
 public:
  NoiseRun(const Recipe& recipe, const std::string& table) {
    folder_.write("stays.csv", table);
    testing::internal::CaptureStderr();
    metrics_ = run_recipe(recipe, {.out = path(), .data = folder_.path()}).metrics;
    stderr_ = testing::internal::GetCapturedStderr();
  }

  std::filesystem::path path() const { return folder_.path() / "run"; }
  std::filesystem::path data() const { return folder_.path(); }
  double score(const std::string& name) const {
    return std::ranges::find(metrics_, name, &Metrics::value_type::first)->second;
  }
  const std::string& told() const { return stderr_; }
  // For stays of both units, mean and deviation of each.
  std::vector<double> predictions(int samples) const {
    const auto file = folder_.write("new.csv", "unit,sex\n1,1\n-1,1\n");
    return predict_file(path(), file, "", samples).values;
  }

 private:
  TemporaryFolder folder_;
  Metrics metrics_;
  std::string stderr_;
};

// The recipe for days, given that for days over σ: what has a unit is in the other one. Steps are
// weights², precisions 1 / weights².
Recipe in_days(Recipe recipe) {
  constexpr double kVariance = kNoise * kNoise;
  recipe.model.noise = kNoise;
  recipe.client.optimizer.lr *= kVariance;
  recipe.client.weight_decay /= kVariance;
  recipe.server.prior->precision /= kVariance;
  recipe.phases[0].inference->alpha /= kVariance;
  recipe.phases[0].inference->initial_scale /= kVariance;
  return recipe;
}

void expect_a_unit_of_the_outcome(const Recipe& recipe) {
  const NoiseRun unit(recipe, table_of(some_stays(), kNoise));
  const NoiseRun days(in_days(recipe), table_of(some_stays(), 1));
  const CoefficientTable of_unit = read_coefficients(unit.path(), "");
  const CoefficientTable of_days = read_coefficients(days.path(), "");
  ASSERT_EQ(of_days.rows.size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(of_days.rows[i].mean, kNoise * of_unit.rows[i].mean) << i;
    EXPECT_EQ(of_days.rows[i].deviation.value(), kNoise * of_unit.rows[i].deviation.value()) << i;
  }
  const std::vector<double> predicted_unit = unit.predictions(20);
  const std::vector<double> predicted_days = days.predictions(20);
  for (std::size_t i = 0; i < predicted_days.size(); ++i) {
    EXPECT_EQ(predicted_days[i], kNoise * predicted_unit[i]);
  }
  EXPECT_EQ(days.score("rmse"), kNoise * unit.score("rmse"));
  EXPECT_NEAR(days.score("nll"), unit.score("nll") + std::log(kNoise), 1e-9);
}

// Days with noise σ are σ times days/σ with noise 1.
TEST(Noise, IsAUnitOfTheOutcome) {
  for (const char* const method : {"laplace", "ngvi", "sample_moments"}) {
    SCOPED_TRACE(method);
    expect_a_unit_of_the_outcome(recipe_of(fmt::format("name = \"{}\"\nepochs = 3\n", method)));
  }
}

// Also where a phase begins with precision α N, and with every other setting that is a precision.
TEST(Noise, IsAUnitOfWhatAPhaseBeginsWith) {
  for (const char* const method : {"scaled_identity", "laplace", "ngvi", "sample_moments"}) {
    SCOPED_TRACE(method);
    Recipe recipe = recipe_of(fmt::format(
        "name = \"{}\"\nepochs = 3\nalpha = 0.25\ninitial_scale = 0.5\n", method));
    recipe.client.weight_decay = 0.0625;
    recipe.phases[0].factors = FactorStart::carry_mean;
    recipe.phases[0].inference->rescale = std::string(method) == "sample_moments";
    expect_a_unit_of_the_outcome(recipe);
  }
}

TEST(Noise, OfFedEpGivesThePosteriorOfBayesianLinearRegression) {
  Recipe recipe = recipe_of("name = \"laplace\"\nepochs = 200\n");
  recipe.data.test_fraction = 0;
  recipe.model.noise = kNoise;
  recipe.client.epochs = 400;
  recipe.client.batch = 1000;
  recipe.client.optimizer.lr = 0.2;
  recipe.phases[0].rounds = 30;
  recipe.phases[0].inference->langevin = false;  // a normal's mode is its mean
  const std::vector<Stay> stays = some_stays();
  const NoiseRun run(recipe, table_of(stays, 1));

  double sums[3] = {0, 0, 0};
  for (const Stay& stay : stays) {
    sums[0] += stay.unit * stay.days;
    sums[1] += stay.sex * stay.days;
    sums[2] += stay.days;
  }
  const double variance = kNoise * kNoise;
  const double precision = double(stays.size()) / variance + recipe.server.prior->precision;
  const double deviation = 1 / std::sqrt(precision);
  const CoefficientTable table = read_coefficients(run.path(), "");
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(table.rows[i].mean, sums[i] / variance / precision, 0.05 * deviation);
    // Laplace's squared gradients are of 80 × 200 drawn labels a hospital.
    EXPECT_NEAR(table.rows[i].deviation.value() / deviation, 1, 0.02);
  }
  // Noise and the spread of three coefficients, both of ±1; 2,000 draws.
  const double of_outcome = std::sqrt(variance + 3 * deviation * deviation);
  const std::vector<double> predicted = run.predictions(2000);
  EXPECT_NEAR(predicted[1], of_outcome, 0.01 * of_outcome);
  EXPECT_NEAR(predicted[3], of_outcome, 0.01 * of_outcome);
  EXPECT_EQ(run.predictions(0)[1], kNoise);
}

TEST(Noise, ThatTheScoresContradictIsTold) {
  Recipe recipe = recipe_of("name = \"laplace\"\nepochs = 3\n");
  recipe.data.test_fraction = 0.5;
  recipe.client.optimizer.lr = 0.01;
  const NoiseRun narrow(recipe, table_of(some_stays(), 1));
  EXPECT_THAT(narrow.told(), HasSubstr("model.noise 1: intervals are about 3.98"));
  EXPECT_THAT(narrow.told(), HasSubstr("times too narrow; set model.noise near"));
  EXPECT_THAT(evaluate_run(narrow.path(), narrow.data(), {}).notes,
              ElementsAre(HasSubstr("too narrow")));
  recipe.model.noise = kNoise;
  recipe.client.optimizer.lr *= kNoise * kNoise;
  const NoiseRun right(recipe, table_of(some_stays(), 1));
  EXPECT_THAT(right.told(), Not(HasSubstr("model.noise")));
  EXPECT_THAT(evaluate_run(right.path(), right.data(), {}).notes, IsEmpty());
}

TEST(Noise, IsDoubtedBeyondAQuarterAndBeyondChance) {
  EXPECT_EQ(noise_doubt({{"rmse", 1.24}}, 1, 10000), "");
  EXPECT_EQ(noise_doubt({{"rmse", 0.81}}, 1, 10000), "");
  EXPECT_THAT(noise_doubt({{"rmse", 5.2}}, 4, 10000), HasSubstr("1.3 times too narrow"));
  EXPECT_THAT(noise_doubt({{"nll", 1}, {"rmse", 2}}, 4, 10000), HasSubstr("2 times too wide"));
  EXPECT_EQ(noise_doubt({{"rmse", 1.3}}, 1, 20), "");  // 20 examples say little
  EXPECT_EQ(noise_doubt({{"rmse", NAN}}, 1, 100), "");
  EXPECT_EQ(noise_doubt({{"accuracy", 5}}, 1, 100), "");
  EXPECT_EQ(noise_doubt({{"rmse", 5}}, 1, 0), "");
}

}  // namespace
}  // namespace fedep
