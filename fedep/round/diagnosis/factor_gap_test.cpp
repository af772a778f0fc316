#include "fedep/round/diagnosis/factor_gap.h"

#include <cmath>

#include <gtest/gtest.h>

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
