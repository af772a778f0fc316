// The laws of rounds with full precision matrices. Clients are linear regressions of correlated
// columns with known noise, for which the tilted distribution is exact: Λ = XᵀX/σ², η = Xᵀy/σ².
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/dense_gaussian.h"
#include "fedep/round/test_federation.h"
#include "fedep/round/test_visit.h"

namespace fedep {
namespace {

constexpr Eigen::Index kColumns = 3;
using Hospitals = Federation<OnHost>;

// Client k has 4 + 6 k rows, whose columns correlate by 0.9; σ = 0.5.
DenseGaussian<double> regression(std::size_t k) {
  Stream stream({.seed = 77, .step = std::uint32_t(k)});
  const auto rows = Eigen::Index(4 + 6 * k);
  Eigen::MatrixXd x(rows, kColumns);
  Eigen::VectorXd y(rows);
  for (Eigen::Index i = 0; i < rows; ++i) {
    const double common = stream.normal();
    for (Eigen::Index j = 0; j < kColumns; ++j) {
      x(i, j) = std::sqrt(0.9) * common + std::sqrt(0.1) * stream.normal();
    }
    y[i] = x(i, 0) - 2 * x(i, 2) + 0.5 * stream.normal();
  }
  return {x.transpose() * y / 0.25, x.transpose() * x / 0.25};
}

GaussianClients regressions(std::size_t count) {
  GaussianClients clients;
  for (std::size_t k = 0; k < count; ++k) {
    clients.add("client-" + std::to_string(k), 4 + 6 * k, to_message<float>(regression(k)));
  }
  return clients;
}

// The pooled posterior under a prior N(0.5, 1/2), in double.
DenseGaussian<double> pooled(std::size_t count) {
  DenseGaussian<double> q{Eigen::VectorXd::Constant(kColumns, 1),
                          2 * Eigen::MatrixXd::Identity(kColumns, kColumns)};
  for (std::size_t k = 0; k < count; ++k) q = product(q, regression(k));
  return q;
}

// Largest distance of means, in pooled deviations, and of the logarithms of deviations.
void expect_posterior(const Message& q, const DenseGaussian<double>& expected, double off) {
  ASSERT_TRUE(q.full());
  const Eigen::MatrixXd sigma = covariance(expected);
  const Eigen::VectorXd center = mean(expected);
  const V found = mean(q), spread = variance(q);
  for (Eigen::Index i = 0; i < kColumns; ++i) {
    const double sd = std::sqrt(sigma(i, i));
    EXPECT_NEAR(double(found[std::size_t(i)]), center[i], off * sd);
    EXPECT_NEAR(0.5 * std::log(double(spread[std::size_t(i)]) / sigma(i, i)), 0, off);
  }
}

Phase undamped(Phase phase) {
  phase.family = Family::full;
  phase.damping.rule = DampingRule::none;
  return phase;
}

TEST(FullFamily, OneUndampedRoundOfAllClientsIsThePooledPosterior) {
  for (const Phase& phase : {undamped(ep_phase(5)), undamped(sep_phase(5, ShareRule::examples)),
                             undamped(sep_phase(5, ShareRule::equal))}) {
    Hospitals run(regressions(5), phase, with_prior(0.5, 2));
    const RoundNumbers numbers = run.play();
    expect_posterior(run.global(), pooled(5), 1e-5);
    EXPECT_GT(numbers.condition, 10);
    EXPECT_EQ(numbers.bytes_up, 5u * (3 + 6) * 8);
    EXPECT_EQ(numbers.bytes_down, 5u * (3 + 6) * 4);
  }
}

struct Case {
  DampingSettings damping;
  std::size_t asked;
  FactorStart start = FactorStart::flat;
  double lr = 1;
};
const std::vector<Case> kCases{
    {{.rule = DampingRule::one_over_k}, 2},
    {{.rule = DampingRule::one_over_k, .outside = true}, 3},
    {{.rule = DampingRule::constant, .constant = 0.5}, 1, FactorStart::carry_mean},
    {{.rule = DampingRule::none}, 2, FactorStart::carry_mean, 0.7},
    {{.rule = DampingRule::decaying}, 6}};

Phase stateful_phase(const Case& c) {
  Phase phase = ep_phase(c.asked, Family::full);
  phase.damping = c.damping;
  phase.factors = c.start;
  phase.server_optimizer.lr = phase.factor_optimizer.lr = c.lr;
  return phase;
}

TEST(FullFamily, DampedRoundsOfSomeClientsConvergeToThePooledPosterior) {
  for (const Case& c : kCases) {
    Hospitals run(regressions(6), stateful_phase(c), with_prior(0.5, 2), V{0.5f, -1, 2});
    run.play(200);
    expect_posterior(run.global(), pooled(6), 1e-4);
  }
}

TEST(FullFamily, PriorTimesFactorsIsTheGlobalInEveryRound) {
  for (const Case& c : kCases) {
    for (const double clip : {0.0, 5.0}) {
      Phase phase = stateful_phase(c);
      phase.clip = clip;
      Hospitals run(regressions(6), phase, with_prior(0.5, 2), V{0.5f, -1, 2});
      std::size_t clipped = 0;
      for (int round = 0; round < 30; ++round) {
        run.executor.lost = {std::size_t(round) % 6};
        clipped += run.play().clipped;
        expect_near(run.prior_times_factors(), run.global(), 3e-6);
      }
      EXPECT_EQ(clipped > 0, clip > 0);
    }
  }
}

TEST(FullFamily, StatelessRoundsOfAllClientsConvergeAndOfSomeComeNearAsTheyCoolDown) {
  Phase all = sep_phase(6, ShareRule::examples);
  all.family = Family::full;
  Hospitals whole(regressions(6), all, with_prior(0.5, 2));
  whole.play(200);
  expect_posterior(whole.global(), pooled(6), 1e-4);
  Phase some = sep_phase(3, ShareRule::equal);
  some.family = Family::full;
  some.cooldown = CooldownSettings{.after = 50, .rounds = 400, .to = 0.002};
  Hospitals half(regressions(6), some, with_prior(0.5, 2));
  half.play(1500);
  expect_posterior(half.global(), pooled(6), 0.5);
}

TEST(FullFamily, ComesFromAnyOrderOfAnswersWithTheSameBits) {
  Hospitals forwards(regressions(6), ep_phase(4, Family::full), with_prior(0.5, 2));
  Hospitals backwards(regressions(6), ep_phase(4, Family::full), with_prior(0.5, 2));
  backwards.executor.backwards = true;
  for (int round = 0; round < 10; ++round) {
    forwards.play();
    backwards.play();
    ASSERT_EQ(forwards.state(), backwards.state());
  }
}

// Its matrix has positive diagonals and an eigenvalue of -10.
GaussianClients indefinite_client() {
  GaussianClients clients;
  clients.add("indefinite", 10, Message(V{1, 0, 0}, Packed<V>{{20, 30, 20, 0, 0, 20}}));
  return clients;
}

TEST(FullFamily, GuardsLookAtDirectionsNotAtTheDiagonal) {
  for (const GuardMode mode :
       {GuardMode::count, GuardMode::back_off, GuardMode::floor, GuardMode::skip}) {
    Phase phase = undamped(ep_phase(1));
    phase.guard = {.mode = mode, .floor = 0.25};
    Hospitals run(indefinite_client(), phase, with_prior(0, 2));
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.improper_global, 1u);
    EXPECT_EQ(is_proper(run.global()), mode != GuardMode::count);
    EXPECT_EQ(numbers.step_scale < 1, mode == GuardMode::back_off || mode == GuardMode::skip);
    if (mode == GuardMode::skip) {
      EXPECT_EQ(run.global(), run.state().prior);
    }
    if (mode == GuardMode::floor) {
      EXPECT_NEAR(min_precision(run.global()), 0.25, 1e-5);
    }
    if (mode != GuardMode::floor) expect_near(run.prior_times_factors(), run.global(), 1e-6);
    // An improper q still has a point to begin chains at.
    EXPECT_TRUE(all_finite(point_estimate(run.state())));
  }
}

TEST(FullFamily, AnImproperCavityIsFoundAndGuarded) {
  const Message too_much = to_message<float>(
      DenseGaussian<double>{Eigen::VectorXd::Zero(3), 3 * Eigen::MatrixXd::Identity(3, 3)});
  for (const GuardMode mode : {GuardMode::count, GuardMode::floor, GuardMode::skip}) {
    Phase phase = ep_phase(1, Family::full);
    phase.guard = {.mode = mode, .floor = 0.5};
    Hospitals run(regressions(1), phase, with_prior(0, 2));
    run.give(0, too_much);  // of a q that is the prior, with precision 2
    const RoundNumbers numbers = run.play();
    EXPECT_EQ(numbers.improper_cavities, 1u);
    EXPECT_EQ(numbers.skipped, mode == GuardMode::skip ? 1u : 0u);
  }
}

TEST(FullFamily, AHandOverCarriesTheMean) {
  ServerSettings settings = with_prior(0.5, 2);
  const Population population = regressions(4).population();
  Phase first = ep_phase(4, Family::diagonal), second = ep_phase(4, Family::full);
  for (const FactorStart start : {FactorStart::carry_mean, FactorStart::flat}) {
    second.factors = start;
    const V at{0.5f, -1, 2};
    ServerState state = begin_phase(initial_server_state(settings, at), first, 0, population);
    state.global = from_mean(at, V{4, 5, 6});
    state = begin_phase(std::move(state), second, 1, population);
    ASSERT_TRUE(state.global.full());
    ASSERT_TRUE(state.prior.full());
    if (start == FactorStart::flat) {
      EXPECT_EQ(state.global, state.prior);
      continue;
    }
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(mean(state.global)[i], at[i], 1e-6);
    Message product_of_all = state.prior;
    for (std::size_t k = 0; k < 4; ++k) {
      product_of_all = product(product_of_all,
                               power(state.unvisited.per_example, float(population[k].examples)));
    }
    expect_near(product_of_all, state.global, 1e-6);
    // And on to a phase of means alone.
    state = begin_phase(std::move(state), {.algorithm = &find_algorithm("fed_avg"), .rounds = 1}, 2,
                        population);
    EXPECT_TRUE(state.global.isotropic());
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(mean(state.global)[i], at[i], 1e-6);
  }
}

// Whatever families come one after the other.
TEST(FullFamily, PriorsOfSingleCoordinatesStayThroughHandOvers) {
  const ServerSettings settings = with_prior(0.5, 2);
  const std::vector<CoordinatePrior> own{{1, -1, 8}, {2, 3, 0.25}};
  const V eta{1, -8, 0.75f}, lambda{2, 8, 0.25f}, at{0.5f, -1, 2};
  const Population population = regressions(4).population();
  const Phase means{.algorithm = &find_algorithm("fed_avg"), .rounds = 1};
  Phase full = ep_phase(4, Family::full), diagonal = ep_phase(4, Family::diagonal);
  for (const FactorStart start : {FactorStart::carry_mean, FactorStart::flat}) {
    full.factors = diagonal.factors = start;
    ServerState state = initial_server_state(settings, at, own);
    std::int64_t index = 0;
    for (const Phase& phase : {means, full, diagonal, means, diagonal, full}) {
      state = begin_phase(std::move(state), phase, index++, population);
      EXPECT_EQ(to_full(state.prior), to_full(Message(eta, lambda)));
      if (phase.algorithm->point_estimate) {
        EXPECT_TRUE(state.global.isotropic());
        continue;
      }
      EXPECT_EQ(state.prior.family(), phase.family);
      if (start == FactorStart::flat) {
        EXPECT_EQ(state.global, state.prior);
        continue;
      }
      for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(mean(state.global)[i], at[i], 1e-6);
      const Message factors = power(state.unvisited.per_example, float(population.examples()));
      expect_near(product(state.prior, factors), state.global, 1e-6);
    }
  }
  ServerState state = initial_server_state(settings, at, own);
  EXPECT_THROW(begin_phase(state, ep_phase(4, Family::isotropic), 0, population), InputError);
  EXPECT_THROW(initial_server_state(settings, at, std::vector<CoordinatePrior>{{3, 0, 1}}),
               InputError);
}

}  // namespace
}  // namespace fedep
