#include "fedep/round/diagnosis/factor_gap.h"

#include <cmath>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/packed.h"
#include "fedep/round/test_federation.h"

namespace fedep {
namespace {

FactorGap gap_of(Federation<OnHost>& run, const ServerState& state) {
  return factor_gap(state, run.phase, run.population, run.sites());
}

TEST(FactorGap, IsHowFarQIsFromPriorTimesFactorsRelativeToItself) {
  for (const FactorStart start : {FactorStart::flat, FactorStart::carry_mean}) {
    Phase phase = ep_phase(2);
    phase.factors = start;
    Federation<OnHost> run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2),
                           V{0.5f, -1, 2});
    EXPECT_LT(gap_of(run, run.state()).eta, 1e-6);
    run.play(4);  // some were never asked
    ServerState state = run.state();
    EXPECT_LT(gap_of(run, state).eta, 1e-6);
    EXPECT_LT(gap_of(run, state).lambda, 1e-6);
    state.global = Message(1.25f * state.global.eta(), 0.5f * state.global.lambda_vector());
    EXPECT_NEAR(gap_of(run, state).eta, 0.2, 1e-6);
    EXPECT_NEAR(gap_of(run, state).lambda, 1, 1e-6);
  }
}

TEST(FactorGap, IsTheSameOfSumsThatSomebodyElseHasAddedUp) {
  Federation<OnHost> run(random_clients(5, Family::diagonal), ep_phase(2), with_prior(0.5, 2));
  run.play(4);
  ServerState state = run.state();
  state.global = power(state.global, 1.5f);
  std::vector<double> eta(state.global.size()), lambda(state.global.size());
  for (std::size_t k = 0; k < run.population.size(); ++k) {
    const Message factor = run.factor(k);
    for (std::size_t i = 0; i < eta.size(); ++i) {
      eta[i] += double(factor.eta()[i]);
      lambda[i] += double(factor.lambda_span()[i]);
    }
  }
  const FactorGap gap = factor_gap_of_sums(state, run.phase, eta, lambda);
  EXPECT_NEAR(gap.eta, 1.0 / 3, 1e-6);
  EXPECT_NEAR(gap.eta, gap_of(run, state).eta, 1e-12);
  EXPECT_NEAR(gap.lambda, gap_of(run, state).lambda, 1e-12);
  lambda[1] = NAN;
  EXPECT_TRUE(std::isnan(factor_gap_of_sums(state, run.phase, eta, lambda).eta));
  eta.pop_back();
  EXPECT_THROW(factor_gap_of_sums(state, run.phase, eta, lambda), InputError);
}

TEST(FactorGap, OfAFullPrecisionCountsWhatIsOffTheDiagonalTwice) {
  Phase phase = ep_phase(1, Family::full);
  ServerState state;
  state.prior = state.global = flat_like(V(2), Family::full);
  state.global.lambda_span()[0] = 3;  // [3 1; 1 2]
  state.global.lambda_span()[1] = 1;
  state.global.lambda_span()[2] = 2;
  state.prior.lambda_span()[0] = 3;
  state.prior.lambda_span()[2] = 2;
  const Population nobody = make_population({{"a", 3}});
  const FactorGap gap = factor_gap(state, phase, nobody, *make_memory_store());
  EXPECT_EQ(gap.eta, 0);
  EXPECT_DOUBLE_EQ(gap.lambda, std::sqrt(2.0 / 15));
}

}  // namespace
}  // namespace fedep
