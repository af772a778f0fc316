// Rounds of ADMM, coordinate by coordinate: clients' likelihoods are Gaussians of the message's family.
// sim/field_laws_test.cpp has dense ones, and the other algorithms of the field.

#include <set>
#include <vector>

#include "fedep/round/diagnosis/factor_gap.h"
#include "fedep/round/test_federation.h"

namespace fedep {
namespace {

using Rounds = Federation<OnHost>;

Phase admm_phase(std::size_t asked, double penalty, double dual_rate, double temperature) {
  Phase phase = ep_phase(asked);
  phase.algorithm = &find_algorithm("bayes_admm");
  phase.penalty = penalty;
  phase.temperature = temperature;
  phase.damping = {.rule = DampingRule::constant, .constant = dual_rate * penalty};
  return phase;
}

TEST(Admm, StandsStillAtThePriorTimesLikelihoodsToThePowerOfOneOverT) {
  for (const double temperature : {1.0, 2.5}) {
    for (const std::size_t asked : {std::size_t(2), std::size_t(5)}) {
      for (const double penalty : {0.6, 1.0, 2.0}) {
        Rounds run(random_clients(5, Family::diagonal),
                   admm_phase(asked, penalty, 0.4, temperature), with_prior(0.5, 2));
        run.play(500);
        Message posterior = run.state().prior;
        for (std::size_t k = 0; k < 5; ++k) {
          const Message counted = power(run.likelihood(k), float(1 / temperature));
          expect_near(run.factor(k), counted, 1e-4);
          posterior = product(posterior, counted);
        }
        expect_near(run.global(), posterior, 1e-4);
      }
    }
  }
}

// Two rounds by hand, in double, with a client's answer lost in the second: the mean is over those who
// answered, a counts all.
TEST(Admm, PlaysItsRoundsAsWrittenAlsoWhereAnAnswerIsLost) {
  const double rho = 0.7, gamma = 0.4;
  Rounds run(whole_clients(), admm_phase(4, rho, gamma, 1), with_prior(0.5, 4));
  std::vector<double> eta(3, 2), lambda(3, 4);
  std::vector<std::vector<double>> s_eta(4, std::vector<double>(3)), s_lambda = s_eta;
  for (int round = 0; round < 3; ++round) {
    if (round == 1) run.executor.lost = {2};
    if (round == 2) run.executor.lost = {};
    for (std::size_t i = 0; i < 3; ++i) {
      double sum_eta = 0, sum_lambda = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        if (run.executor.lost.contains(k)) continue;
        const Message& own = run.likelihood(k);
        const double d_eta = (double(own.eta()[i]) - s_eta[k][i]) / rho;
        const double d_lambda = (double(own.lambda_vector()[i]) - s_lambda[k][i]) / rho;
        s_eta[k][i] += gamma * rho * d_eta;
        s_lambda[k][i] += gamma * rho * d_lambda;
        sum_eta += d_eta;
        sum_lambda += d_lambda;
      }
      double all_eta = 2, all_lambda = 4;
      for (std::size_t k = 0; k < 4; ++k) {
        all_eta += s_eta[k][i];
        all_lambda += s_lambda[k][i];
      }
      const double a = 1 / (1 + 4 * rho), answered = 4 - double(run.executor.lost.size());
      eta[i] = (1 - a) * (eta[i] + sum_eta / answered) + a * all_eta;
      lambda[i] = (1 - a) * (lambda[i] + sum_lambda / answered) + a * all_lambda;
    }
    run.play();
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_NEAR(run.global().eta()[i], eta[i], 1e-3) << round;
      EXPECT_NEAR(run.global().lambda_vector()[i], lambda[i], 1e-3) << round;
    }
  }
}

TEST(Admm, HasThePriorTimesAllFactorsBesideQAlsoInACooldown) {
  Phase phase = admm_phase(3, 1.3, 0.5, 1);
  phase.cooldown = CooldownSettings{.after = 2, .rounds = 5, .to = 0.2};
  phase.guard.mode = GuardMode::back_off;
  Rounds run(random_clients(5, Family::diagonal), phase, with_prior(0.5, 2));
  for (int round = 0; round < 20; ++round) {
    run.executor.lost = round % 4 == 2 ? std::set<std::size_t>{0, 3} : std::set<std::size_t>{};
    run.play();
    expect_near(run.prior_times_factors(), run.state().factors, 1e-5);
    const FactorGap gap = factor_gap(run.state(), run.phase, run.population, run.sites());
    EXPECT_LT(gap.eta, 1e-5);
    EXPECT_LT(gap.lambda, 1e-5);
  }
}

// Clients' mean losses add up, each client once, whoever is asked.
TEST(AdmmOfPointEstimates, StandsStillAtTheMinimumOfMeanLosses) {
  for (const std::size_t asked : {std::size_t(2), std::size_t(4)}) {
    Phase phase = ep_phase(asked, Family::isotropic);
    phase.algorithm = &find_algorithm("fed_dyn");
    phase.cavity = CavityKind::dual;
    phase.mu = 1.5;
    phase.damping.rule = DampingRule::none;
    Rounds run(whole_clients(), phase);
    run.play(400);
    for (std::size_t i = 0; i < 3; ++i) {
      double eta = 0, lambda = 0;
      for (std::size_t k = 0; k < 4; ++k) {
        const double n = double(run.population[k].examples);
        eta += double(run.likelihood(k).eta()[i]) / n;
        lambda += double(run.likelihood(k).lambda_vector()[i]) / n;
      }
      EXPECT_NEAR(run.global().eta()[i], eta / lambda, 1e-4);
    }
    EXPECT_EQ(run.global().lambda_scalar(), 1.0f);
  }
}

}  // namespace
}  // namespace fedep
