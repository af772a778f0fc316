// model.noise, the standard deviation of an outcome that is a number, through whole runs and what is
// read from them. Columns are ±1 in a factorial design, so that they are scaled already and XᵀX = n I:
// the posterior of the pooled rows has a closed form, and it is in FedEP's diagonal family.

#include <algorithm>
#include <bit>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "app/posterior/coefficients_command.h"
#include "app/posterior/evaluate_command.h"
#include "app/posterior/predict_file.h"
#include "app/posterior/saved_posterior.h"
#include "app/run/run_recipe.h"
#include "app/run/run_warnings.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/made_up/regression.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::AllOf;
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
table = "noise"  # not judged: chains are noisy
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
    metrics_ = run_recipe(recipe, {.out = path(), .data = folder_.path()}).result.metrics;
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
  }
  const SavedPosterior in_units = read_posterior(unit.path()),
                       as_days = read_posterior(days.path());
  const std::span<const float> unit_lambda = in_units.state.global.lambda_span();
  const std::span<const float> days_lambda = as_days.state.global.lambda_span();
  for (std::size_t i = 0; i < days_lambda.size(); ++i) {
    EXPECT_EQ(kNoise * kNoise * days_lambda[i], unit_lambda[i]) << i;
  }
  const std::vector<double> predicted_unit = unit.predictions(20);
  const std::vector<double> predicted_days = days.predictions(20);
  for (std::size_t i = 0; i < predicted_days.size(); ++i) {
    const bool is_deviation = i % 2 == 1;
    if (is_deviation && !as_days.posterior) continue;
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
    Recipe recipe = recipe_of(
        fmt::format("name = \"{}\"\nepochs = 3\nalpha = 0.25\ninitial_scale = 0.5\n", method));
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
  EXPECT_THAT(narrow.told(), HasSubstr("model.noise 1: intervals are up to 3.98"));
  EXPECT_THAT(narrow.told(), AllOf(HasSubstr("once the run has converged"),
                                   HasSubstr("set model.noise near 3.98")));
  EXPECT_THAT(evaluate_run(narrow.path(), narrow.data(), {}).notes,
              ElementsAre(HasSubstr("too narrow")));
  recipe.model.noise = kNoise;
  recipe.client.optimizer.lr *= kNoise * kNoise;
  const NoiseRun right(recipe, table_of(some_stays(), 1));
  EXPECT_THAT(right.told(), Not(HasSubstr("model.noise")));
  EXPECT_THAT(evaluate_run(right.path(), right.data(), {}).notes, IsEmpty());
}

// Of more than are read at a time.
TEST(HeldOutNumbers, AreThoseOfAllHeldOutExamples) {
  const auto data = open_regression(
      {.name = "regression", .clients = 3, .dimension = 2, .examples = 1000, .test_fraction = 0.5},
      5);
  const Batch all = test_batch(*data);
  ASSERT_GT(all.size, 1200u);
  double mean = 0, square = 0;
  for (const float y : all.reals) mean += double(y) / double(all.size);
  for (const float y : all.reals) square += std::pow(double(y) - mean, 2) / double(all.size);
  const HeldOutNumbers found = held_out_numbers(*data, 0);
  EXPECT_EQ(found.examples, all.size);
  EXPECT_NEAR(found.deviation, std::sqrt(square), 1e-9);
  EXPECT_EQ(held_out_numbers(*data, 40).examples, 40u);  // those that a run scores
}

TEST(Noise, IsDoubtedBeyondAQuarterAndBeyondChance) {
  EXPECT_EQ(noise_doubt({{"rmse", 1.24}}, 1, {10000, 9}), "");
  EXPECT_EQ(noise_doubt({{"rmse", 0.81}}, 1, {10000, 9}), "");
  EXPECT_THAT(noise_doubt({{"rmse", 5.2}}, 4, {10000, 9}), HasSubstr("up to 1.3 times too narrow"));
  EXPECT_THAT(noise_doubt({{"nll", 1}, {"rmse", 2}}, 4, {10000, 9}),
              HasSubstr("at least 2 times too wide"));
  EXPECT_EQ(noise_doubt({{"rmse", 1.3}}, 1, {20, 9}), "");  // 20 examples say little
  EXPECT_EQ(noise_doubt({{"rmse", 5}}, 1, {9, 9}), "");
  EXPECT_EQ(noise_doubt({{"rmse", NAN}}, 1, {100, 9}), "");
  EXPECT_EQ(noise_doubt({{"rmse", INFINITY}}, 1, {100, 9}), "");
  EXPECT_EQ(noise_doubt({{"accuracy", 5}}, 1, {100, 9}), "");
}

Metrics drawn_scores(double rmse, double spread, double error_ratio) {
  return {{"rmse", rmse + 1},  // at the mean
          {"rmse_marginal", rmse},
          {"spread_marginal", spread},
          {"error_ratio_marginal", error_ratio}};
}

TEST(Noise, IsComparedWithErrorsBeyondTheSpreadOfDraws) {
  // RMSE 5 = √(3² + 4²): all that a noise of 3 leaves to the weights.
  EXPECT_EQ(noise_doubt(drawn_scores(5, 4, 1), 3, {10000, 9}), "");
  const std::string doubt = noise_doubt(drawn_scores(5, 4, 1.5), 1, {10000, 9});
  EXPECT_THAT(doubt, HasSubstr("about 1.5 times too narrow"));
  EXPECT_THAT(doubt, HasSubstr("near 3,"));
  EXPECT_THAT(doubt, HasSubstr("lr and alpha"));
  EXPECT_THAT(noise_doubt(drawn_scores(5, 4, 0.5), 6, {10000, 9}), HasSubstr("near 3,"));
  EXPECT_EQ(noise_doubt(drawn_scores(5, 4, 1.5), 3, {10000, 9}), "");  // not the noise's fault
  EXPECT_EQ(noise_doubt(drawn_scores(5, 4, NAN), 1, {10000, 9}), "");
}

TEST(Noise, IsNotToldFromARunThatPredictsWorseThanTheMean) {
  const std::string told = noise_doubt({{"rmse", 2.88e25}}, 3, {200, 5.5});
  EXPECT_THAT(told, HasSubstr("has diverged"));
  EXPECT_THAT(told, Not(HasSubstr("model.noise")));
}

TEST(Noise, IsNotToldFromARunWhoseAnswersWereRefused) {
  Recipe recipe = recipe_of("name = \"laplace\"\nepochs = 3\n");
  recipe.client.optimizer.lr = 1e6;
  const NoiseRun run(recipe, table_of(some_stays(), 1));
  EXPECT_THAT(run.told(), HasSubstr("refused in 8 of 8 rounds"));
  EXPECT_THAT(run.told(), Not(HasSubstr("RMSE")));
  EXPECT_THAT(evaluate_run(run.path(), run.data(), {}).notes, IsEmpty());
}

// 32 training rows of a Hadamard design for 31 weights, and 300 held-out ones, with noise 1.
std::string table_of_few_rows() {
  Stream stream({.seed = 9});
  std::string text = "hospital,part,days";
  for (int j = 1; j <= 30; ++j) text += fmt::format(",x{}", j);
  for (int i = 0; i < 332; ++i) {
    const bool train = i < 32;
    double days = stream.normal();
    std::string columns;
    for (int j = 1; j <= 30; ++j) {
      const bool plus = train ? std::popcount(unsigned(i & j)) % 2 == 0 : stream.uniform() < 0.5;
      columns += plus ? ",1" : ",-1";
      days += (plus ? 1 : -1) * (j % 3);
    }
    text += fmt::format("\n{},{},{}{}", "ABCD"[i % 4], train ? "train" : "test", days, columns);
  }
  return text;
}

// Errors are large there because the weights are not known, as predicted.
TEST(Noise, OfOneIsNotDoubtedWhereTheWeightsAreUncertain) {
  Recipe recipe = recipe_of("name = \"laplace\"\nepochs = 20\n");
  recipe.data.test_column = "part";
  recipe.client.epochs = 300;
  recipe.client.batch = 1000;
  recipe.client.optimizer.lr = 0.05;
  recipe.server.clients_per_round = 4;
  recipe.server.prior->precision = 0.01;
  recipe.phases[0].rounds = 60;
  recipe.phases[0].inference->langevin = false;
  const NoiseRun at_the_mean(recipe, table_of_few_rows());
  EXPECT_GT(at_the_mean.score("rmse"), 1.3);
  EXPECT_THAT(at_the_mean.told(), HasSubstr("with evaluate.samples"));
  recipe.evaluate.samples = 100;
  const NoiseRun drawn(recipe, table_of_few_rows());
  EXPECT_NEAR(drawn.score("spread_marginal"), std::sqrt(31.0 / 32), 0.1);
  EXPECT_THAT(drawn.told(), Not(HasSubstr("model.noise")));
}

}  // namespace
}  // namespace fedep
