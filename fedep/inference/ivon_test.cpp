// IVON on quadratic losses, where its recursion has a known end.

#include "fedep/inference/ivon.h"

#include <cmath>
#include <functional>

#include <gtest/gtest.h>

#include "fedep/inference/infer_cohort.h"

namespace fedep {
namespace {

using V = HostVector<double>;
using Q = Gaussian<V>;

// One client whose mean loss is ½ Σ curvature_i (θ_i - minimum_i)². Noise is +1 in even draws and -1 in
// odd ones: two draws then give the Hessian exactly, and the gradient at the mean.
class QuadraticCohort final : public Cohort<V> {
 public:
  std::size_t clients() const override { return 1; }
  double examples(std::size_t) const override { return n; }
  const Q& cavity(std::size_t) const override { return the_cavity; }
  double weight_decay() const override { return wd; }
  int epochs() const override { return steps_in_all; }
  void sgd_epoch(int) override { ADD_FAILURE() << "IVON has a chain of its own"; }
  V iterate(std::size_t) const override { return start; }
  V epoch_average(std::size_t) const override { return start; }
  void accumulate_moments() override { ADD_FAILURE() << "IVON has a chain of its own"; }
  V mean(std::size_t) const override { return start; }
  V variance(std::size_t) const override { return start; }
  std::size_t steps(std::size_t) const override { return 0; }
  double loss_sum(std::size_t) const override { return 0; }
  int fisher_batches(std::size_t, int epochs) const override { return epochs; }
  std::vector<V> squared_gradients(const std::vector<V>&, int, int, int) override { return {}; }
  std::vector<V> gradients(const std::vector<V>& theta, int, int, int) override {
    return {curvature * (theta[0] - minimum)};
  }
  double step_rate(int, int) const override { return lr; }
  double step_momentum() const override { return momentum; }
  V noise(std::size_t, int, int draw) const override { return V(2, draw % 2 == 0 ? 1.0 : -1.0); }

  double n = 10, wd = 0.5, lr = 0.2, momentum = 0.9;
  int steps_in_all = 4000;
  Q the_cavity{V{1, -3}, V{4, 16}};
  V start{5, -7}, curvature{2, 0.1}, minimum{-1, 3};
};

InferenceSettings settings_of(double decay = 0.99) {
  InferenceSettings settings{.name = "ivon"};
  settings.samples = 2;
  settings.decay = decay;
  settings.initial_scale = 0.3;
  return settings;
}

Q tilted_of(QuadraticCohort& cohort, const InferenceSettings& settings) {
  return infer_cohort(cohort, find_algorithm("fed_ep"), settings)[0].tilted;
}

// Cavity times weight decay times likelihood, for any rate and momentum that converge.
TEST(Ivon, EndsAtTheExactTiltedDistribution) {
  for (const double momentum : {0.0, 0.9}) {
    for (const double lr : {0.05, 0.5}) {
      QuadraticCohort cohort;
      cohort.momentum = momentum;
      cohort.lr = lr;
      const Q tilted = tilted_of(cohort, settings_of());
      for (std::size_t i = 0; i < 2; ++i) {
        const double own = 10 * cohort.curvature[i];
        const double lambda = own + cohort.the_cavity.lambda_vector()[i] + 5;
        EXPECT_NEAR(tilted.lambda_vector()[i], lambda, 1e-9 * lambda);
        EXPECT_NEAR(tilted.eta()[i], own * cohort.minimum[i] + cohort.the_cavity.eta()[i],
                    1e-8 * lambda);
      }
    }
  }
}

TEST(Ivon, MakesItsFirstStepByHand) {
  QuadraticCohort cohort;
  cohort.steps_in_all = 1;
  const Q tilted = tilted_of(cohort, settings_of(0.9));
  // Coordinate 0: Λ_p = 4 + 5, h_0 = 3, f = 20; h = 0.9·3 + 0.1·20 + ½·0.01·17²/12.
  const double h = 2.7 + 2 + 0.005 * 289 / 12;
  EXPECT_NEAR(tilted.lambda_vector()[0], h + 9, 1e-12);
  // m = 5 - 0.2 (10·2·(5 + 1) + 9·5 - 1) / (h + 9): the momentum is corrected for its start.
  const double m = 5 - 0.2 * (120 + 45 - 1) / (h + 9);
  EXPECT_NEAR(tilted.eta()[0] / tilted.lambda_vector()[0], m, 1e-12);
}

// Saddles and wild draws give f of any sign and size; h + Λ_p is never below half of what it was.
TEST(Ivon, KeepsItsPrecisionPositiveWhateverTheCurvature) {
  for (const double curvature : {-1e6, -3.0, 0.0, 1e6}) {
    QuadraticCohort cohort;
    cohort.curvature = V(2, curvature);
    cohort.lr = 1e-12;
    for (const double decay : {0.0, 0.5, 0.999}) {
      cohort.steps_in_all = 1;
      const Q tilted = tilted_of(cohort, settings_of(decay));
      EXPECT_GE(tilted.lambda_vector()[0], 0.5 * (4 + 5 + 3) * (1 - 1e-9)) << curvature;
      EXPECT_TRUE(std::isfinite(tilted.lambda_vector()[0]));
    }
  }
}

TEST(Ivon, NeedsACurvatureToBeginWith) {
  InferenceSettings settings = settings_of();
  EXPECT_NO_THROW(check_inference(settings, 1));
  settings.initial_scale = 0;
  EXPECT_THROW(check_inference(settings, 1), InputError);
  settings = settings_of();
  settings.samples = 128;
  EXPECT_THROW(check_inference(settings, 1), InputError);
}

// FedLap's answer.
TEST(Map, IsTheLastIterateWithTheCavitysPrecision) {
  class Short final : public Cohort<V> {
   public:
    std::size_t clients() const override { return 1; }
    double examples(std::size_t) const override { return 3; }
    const Q& cavity(std::size_t) const override { return own; }
    double weight_decay() const override { return 0.5; }
    int epochs() const override { return 2; }
    void sgd_epoch(int) override { last = last + 1.0; }
    V iterate(std::size_t) const override { return last; }
    V epoch_average(std::size_t) const override { return last; }
    void accumulate_moments() override {}
    V mean(std::size_t) const override { return V(2, 100.0); }
    V variance(std::size_t) const override { return last; }
    std::size_t steps(std::size_t) const override { return 0; }
    double loss_sum(std::size_t) const override { return 0; }
    int fisher_batches(std::size_t, int) const override { return 0; }
    std::vector<V> squared_gradients(const std::vector<V>&, int, int, int) override { return {}; }
    V noise(std::size_t, int, int) const override { return last; }
    Q own{V{1, 1}, 4.0};
    V last{1, 2};
  };
  Short cohort;
  const auto tilted = infer_cohort(cohort, find_algorithm("fed_lap"), {.name = "map"})[0].tilted;
  EXPECT_EQ(tilted, Q(V{12, 16}, 4.0));
  Short diagonal;
  diagonal.own = Q(V{1, 1}, V{4, 8});
  EXPECT_EQ(infer_cohort(diagonal, find_algorithm("fed_ep"), {.name = "map"})[0].tilted,
            Q(V{12, 32}, V{4, 8}));
}

}  // namespace
}  // namespace fedep
