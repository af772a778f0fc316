#include "fedep/sim/coefficient_prior.h"

#include <cmath>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/config/resolve.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/test_files.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"
#include "fedep/round/run.h"
#include "fedep/round/site_store.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/task.h"

namespace fedep {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FitsPattern, AStarStandsForAnyText) {
  EXPECT_TRUE(fits_pattern("unit=*", "unit=ICU vs ward"));
  EXPECT_TRUE(fits_pattern("*", ""));
  EXPECT_TRUE(fits_pattern("*ICU*ward", "unit=ICU vs ward"));
  EXPECT_TRUE(fits_pattern("age*sodium", "age * sodium"));
  EXPECT_TRUE(fits_pattern("a*ab", "aab"));
  EXPECT_FALSE(fits_pattern("unit", "unit=ICU vs ward"));
  EXPECT_FALSE(fits_pattern("*ICU", "unit=ICU vs ward"));
  EXPECT_FALSE(fits_pattern("age", "aged"));
  EXPECT_FALSE(fits_pattern("", "age"));
  EXPECT_TRUE(fits_pattern("", ""));
}

// Three wards whose outcome is a number, with noise of deviation 2.
class CoefficientPriors : public testing::Test {
 protected:
  Recipe recipe() {
    std::string text = "ward,days,age,sodium,unit\n";
    for (int i = 0; i < 45; ++i) {
      text += fmt::format("{},{},{},{},{}\n", "ABC"[i % 3], 5 + (i * 37 % 19) * 0.3 + 0.05 * i,
                          20 + i * i % 50, 130 + i * 7 % 17, i % 5 ? i % 7 ? "ICU" : "ER" : "CCU");
    }
    folder_.write("wards.csv", text);
    Recipe out;
    out.data = {.name = "tabular", .path = "wards.csv", .test_fraction = 0};
    out.data.client_column = "ward";
    out.data.label_column = "days";
    out.data.label = LabelKind::number;
    out.data.categories = {"unit"};
    out.model.noise = 2;
    out.server.clients_per_round = 3;
    out.server.prior = PriorSettings{.mean = 0.25, .precision = 1};
    out.phases = {{.algorithm = "fed_ep", .rounds = 40}};
    return resolved(out);
  }
  std::unique_ptr<Task> task_of(const Recipe& recipe) { return make_task(recipe, folder_.path()); }
  std::string refusal(const Recipe& recipe) {
    return message_of<InputError>([&] { task_of(recipe); });
  }
  std::string refusal(const CoefficientPrior& prior) {
    Recipe wrong = recipe();
    wrong.priors = {prior};
    return refusal(wrong);
  }
  ServerState played(const Recipe& given) {
    const std::unique_ptr<Task> task = task_of(given);
    const Recipe decided = decide_families(given, *task).recipe;
    const std::vector<Phase> phases =
        plan_phases(decided, [&](std::string_view name) { return task->family_of(name); });
    const std::unique_ptr<SiteStore> sites = make_memory_store();
    const std::unique_ptr<Place> place = find_place("cpu", 1).make(decided, *task, *sites, {});
    return play_run({decided, phases, task->population(), task->layout(), *place, task->priors()},
                    task->initial_weights())
        .state;
  }

  TemporaryFolder folder_;
};

TEST_F(CoefficientPriors, GoByNameTheLastThatFitsCountsAndTheInterceptIsNamed) {
  Recipe given = recipe();
  given.priors = {{"*", 1, 2}, {"unit=*", 0, 4}, {"unit=ER*", 0.5, 9}};
  EXPECT_THAT(task_of(given)->priors(),
              ElementsAre(CoordinatePrior{0, 1, 2}, CoordinatePrior{1, 1, 2},
                          CoordinatePrior{2, 0, 4}, CoordinatePrior{3, 0.5, 9}));
  given.priors = {{"intercept", 3, 0.01}};
  EXPECT_THAT(task_of(given)->priors(), ElementsAre(CoordinatePrior{4, 3, 0.01}));
  given.priors.clear();
  EXPECT_TRUE(task_of(given)->priors().empty());
}

TEST_F(CoefficientPriors, OfSeveralClassesAreOfEach) {
  Recipe given = recipe();
  given.data.label_column = "unit";
  given.data.categories = {};
  given.data.features = {"age", "sodium"};
  given.data.label = LabelKind::classes;
  given.phases[0].inference = InferenceSettings{.name = "laplace"};
  given.priors = {{"sodium", 0, 4}, {"intercept", 0, 2}};
  EXPECT_THAT(
      task_of(given)->priors(),
      ElementsAre(CoordinatePrior{3, 0, 4}, CoordinatePrior{4, 0, 4}, CoordinatePrior{5, 0, 4},
                  CoordinatePrior{6, 0, 2}, CoordinatePrior{7, 0, 2}, CoordinatePrior{8, 0, 2}));
}

TEST_F(CoefficientPriors, AreRefusedWhereTheyFitNothingOrCannotBe) {
  EXPECT_THAT(refusal(CoefficientPrior{"sodim"}),
              HasSubstr("prior.0.coefficient must fit a coefficient, but sodim fits none; did you "
                        "mean sodium?; there are age, sodium, \"unit=CCU vs ICU\""));
  EXPECT_THAT(refusal(CoefficientPrior{"unit"}), HasSubstr("fits none"));
  EXPECT_THAT(refusal(CoefficientPrior{"inter*"}), HasSubstr("fits none"));
  Recipe wrong = recipe();
  wrong.priors = {{"age"}};
  Recipe flat = wrong, network = wrong, means = wrong, toy = wrong, made_up = wrong;
  flat.server.prior.reset();
  EXPECT_THAT(refusal(flat), HasSubstr("server.prior must be proper"));
  means.phases[0].algorithm = "fed_avg";
  EXPECT_THAT(refusal(means), HasSubstr("a phase must infer"));
  toy.data = {.name = "toy"};
  EXPECT_THAT(refusal(toy), HasSubstr("data must be a table"));
  made_up.data = {.name = "regression"};
  EXPECT_THAT(refusal(made_up), HasSubstr("data must be a table"));
}

TEST_F(CoefficientPriors, NeedAPrecisionForEachCoefficient) {
  Recipe given = recipe();
  given.priors = {{"age"}};
  given.phases[0].inference = InferenceSettings{.name = "scaled_identity"};
  const auto task = task_of(given);
  const std::vector<Phase> phases =
      plan_phases(given, [&](std::string_view name) { return task->family_of(name); });
  EXPECT_THAT(message_of<InputError>([&] { check_prior_families(given, phases); }),
              HasSubstr("scaled_identity has one for all"));
  given.priors.clear();
  EXPECT_NO_THROW(check_prior_families(given, phases));
}

TEST_F(CoefficientPriors, AreToldByWhatTheyAre) {
  Recipe given = recipe();
  given.priors = {{"unit=*", 0, 4}, {"intercept", 3, 0.01}};
  const auto task = task_of(given);
  EXPECT_THAT(told_priors(given, task->data()->info()),
              ElementsAre("N(0, 0.5²): \"unit=CCU vs ICU\", \"unit=ER vs ICU\"",
                          "N(3, 10²): intercept", "N(0.25, 1²): the other 2 coefficients"));
}

// Where likelihoods are Gaussian the posterior is known: Λ = Λ_0 + XᵀX/σ², η = η_0 + Xᵀy/σ².
TEST_F(CoefficientPriors, MakeTheExactPosterior) {
  for (const FactorStart start : {FactorStart::flat, FactorStart::carry_mean}) {
    Recipe given = recipe();
    given.priors = {{"unit=*", 0, 40}, {"intercept", 3, 0.01}, {"age", -1, 25}};
    given.phases[0].factors = start;
    const ServerState state = played(given);
    const auto task = task_of(given);
    Eigen::VectorXd eta(5), precision(5);
    precision << 25, 1, 40, 40, 0.01;
    eta << -25, 0.25, 0, 0, 0.03;
    Eigen::MatrixXd lambda = precision.asDiagonal();
    for (std::size_t c = 0; c < 3; ++c) {
      const Batch batch = training_batch(*task->data(), c);
      for (std::size_t i = 0; i < batch.size; ++i) {
        Eigen::VectorXd x = Eigen::VectorXd::Ones(5);
        for (std::size_t j = 0; j < 4; ++j) x[Eigen::Index(j)] = double(batch.dense[4 * i + j]);
        lambda += x * x.transpose() / 4;
        eta += x * double(batch.reals[i]) / 4;
      }
    }
    const DenseGaussian<double> q = in_double(state.global);
    EXPECT_LT((q.lambda - lambda).norm() / lambda.norm(), 1e-5);
    EXPECT_LT((q.eta - eta).norm() / eta.norm(), 1e-5);
  }
}

TEST_F(CoefficientPriors, OfOneNumberHaveTheBitsOfTheServersPrior) {
  Recipe given = recipe();
  given.priors = {{"*", 0.25, 1}, {"intercept", 0.25, 1}};
  EXPECT_EQ(played(given), played(recipe()));
}

}  // namespace
}  // namespace fedep
