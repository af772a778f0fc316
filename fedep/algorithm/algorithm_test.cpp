#include "fedep/algorithm/algorithm.h"

#include <cmath>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/algorithm/admm_step.h"
#include "fedep/algorithm/cavity.h"
#include "fedep/algorithm/cooldown.h"
#include "fedep/algorithm/damping.h"
#include "fedep/algorithm/delta.h"
#include "fedep/algorithm/fed_avg.h"
#include "fedep/algorithm/fed_ep.h"
#include "fedep/algorithm/fed_pa.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<double>;
using Q = Gaussian<V>;

V random_vector(std::size_t d, std::uint32_t step) {
  Stream stream({.seed = 5, .step = step});
  V v(d);
  for (double& x : v.span()) x = stream.normal();
  return v;
}

Q random_message(std::size_t d, std::uint32_t step) {
  const V v = random_vector(d, 100 + step);
  return {random_vector(d, step), v * v + 0.5};
}

void expect_near(const Q& a, const Q& b, double tolerance = 1e-12) {
  const V la = a.lambda_full(), lb = b.lambda_full();
  for (std::size_t i = 0; i < a.size(); ++i) {
    EXPECT_NEAR(a.eta()[i], b.eta()[i], tolerance);
    EXPECT_NEAR(la[i], lb[i], tolerance);
  }
}

TEST(FedPa, DeltaEqualsTheDenseSolve) {
  for (const std::size_t d : {1u, 3u, 20u}) {
    for (const std::size_t l : {1u, 2u, 5u, 12u}) {
      for (const double rho : {0.01, 0.1, 1.0, 10.0}) {
        std::vector<V> samples;
        for (std::size_t t = 0; t < l; ++t) samples.push_back(random_vector(d, std::uint32_t(t)));
        const V initial = random_vector(d, 99);
        Eigen::MatrixXd x(d, l);
        for (std::size_t t = 0; t < l; ++t) {
          for (std::size_t i = 0; i < d; ++i) x(i, t) = samples[t][i];
        }
        const Eigen::VectorXd average = x.rowwise().mean();
        const Eigen::MatrixXd centred = x.colwise() - average;
        const double shrink = 1 / (1 + double(l - 1) * rho);
        Eigen::MatrixXd sigma = shrink * Eigen::MatrixXd::Identity(d, d);
        if (l > 1) sigma += (1 - shrink) / double(l - 1) * centred * centred.transpose();
        Eigen::VectorXd gap(d);
        for (std::size_t i = 0; i < d; ++i) gap[i] = average[i] - initial[i];
        const Eigen::VectorXd expected = sigma.ldlt().solve(gap);
        const V delta = posterior_delta(std::span<const V>(samples), initial, rho);
        for (std::size_t i = 0; i < d; ++i) {
          EXPECT_NEAR(delta[i], expected[i], 1e-10 * (1 + expected.norm()));
        }
      }
    }
  }
}

// Samples that have hardly moved apart, far from where they started.
TEST(FedPa, FloatsThatLieCloseTogetherAreSolvedAsExactlyAsDoubles) {
  using F = HostVector<float>;
  constexpr std::size_t d = 2000, l = 10;
  std::vector<F> samples;
  std::vector<V> exact;
  const V far = random_vector(d, 50);
  for (std::size_t t = 0; t < l; ++t) {
    const V near = random_vector(d, std::uint32_t(t));
    F sample(d);
    V same(d);
    for (std::size_t i = 0; i < d; ++i) {
      sample[i] = float(far[i] + 0.01 * near[i]);
      same[i] = double(sample[i]);
    }
    samples.push_back(sample);
    exact.push_back(same);
  }
  for (const double rho : {0.01, 1.0, 100.0}) {
    const F delta = posterior_delta(std::span<const F>(samples), F(d), rho);
    const V expected = posterior_delta(std::span<const V>(exact), V(d), rho);
    double gap = 0, norm = 0;
    for (std::size_t i = 0; i < d; ++i) {
      gap += std::pow(double(delta[i]) - expected[i], 2);
      norm += expected[i] * expected[i];
    }
    EXPECT_LT(std::sqrt(gap / norm), 1e-6) << rho;
  }
}

// Σ̂ = ρ_l I.
TEST(FedPa, SamplesAtOnePlaceHaveNoSpreadHoweverFarTheyAre) {
  for (const double far : {1e3, 1e9, 1e25}) {
    const V place = far * random_vector(500, 50), initial = random_vector(500, 51);
    const std::vector<V> samples(4, place);
    const V delta = posterior_delta(std::span<const V>(samples), initial, 0.5);
    const V expected = (1 + 3 * 0.5) * (place - initial);
    for (std::size_t i = 0; i < 500; ++i) EXPECT_NEAR(delta[i], expected[i], 1e-12 * far);
  }
}

TEST(FedPa, WithRhoZeroItIsTheMeanMinusTheStart) {
  const std::vector<V> samples{{1.0, 2.0}, {3.0, 6.0}};
  const V delta = posterior_delta(std::span<const V>(samples), V{1.0, 1.0}, 0.0);
  EXPECT_NEAR(delta[0], 1, 1e-15);
  EXPECT_NEAR(delta[1], 3, 1e-15);
}

TEST(FedPa, RefusesNoSamplesAndNegativeRho) {
  const std::vector<V> none, one{{1.0}};
  EXPECT_THROW(posterior_delta(std::span<const V>(none), V{0.0}, 0.1), InputError);
  EXPECT_THROW(posterior_delta(std::span<const V>(one), V{0.0}, -0.1), InputError);
}

TEST(FedAvg, DeltaIsTheMoveOfTheWeightsAndLeavesThePrecision) {
  const Q global = from_mean(V{1.0, 2.0}, 1.0);
  const Q delta = fed_avg_delta(V{1.5, 1.0}, mean(global));
  EXPECT_EQ(delta, Q(V({0.5, -1.0}), 0.0));
}

TEST(Cavity, OwnFactorTimesFactorIsGlobal) {
  const Q global = random_message(4, 1), factor = random_message(4, 2),
          prior = random_message(4, 3);
  expect_near(product(cavity(CavityKind::own_factor, global, prior, factor, 0), factor), global);
}

TEST(Cavity, SharesOfAllClientsAndThePriorMakeUpTheGlobal) {
  const Q global = random_message(4, 1), prior = random_message(4, 3);
  Q whole = prior;
  for (const double examples : {10.0, 30.0, 60.0}) {
    const double share = share_of(ShareRule::examples, examples, 100, 3);
    const Q rest = cavity(CavityKind::share, global, prior, global, share);
    whole = product(whole, quotient(global, rest));
  }
  expect_near(whole, global);
  EXPECT_DOUBLE_EQ(share_of(ShareRule::equal, 10, 100, 4), 0.25);
}

TEST(Cavity, ShareOneLeavesThePriorAndShareZeroEverything) {
  const Q global = random_message(4, 1), prior = random_message(4, 3);
  expect_near(cavity(CavityKind::share, global, prior, global, 1), prior);
  expect_near(cavity(CavityKind::share, global, prior, global, 0), global);
  EXPECT_THROW(cavity(CavityKind::share, global, prior, global, 1.5), InputError);
}

TEST(Cavity, FlatIsFlatAndWholeIsWhole) {
  const Q global = random_message(4, 1);
  EXPECT_EQ(cavity(CavityKind::flat, global, global, global, 0),
            flat_like(global.eta(), Family::diagonal));
  EXPECT_EQ(cavity(CavityKind::whole, global, global, global, 0), global);
}

TEST(FedEp, DampedUpdateOfTheFactorIsAGeometricMixture) {
  // Guo+23 App. A: q_k^(1-δ) (q̂/q_{-k})^δ = q_k (q̂/q)^δ
  const Q global = random_message(4, 1), factor = random_message(4, 2),
          tilted = random_message(4, 3);
  const Q rest = cavity(CavityKind::own_factor, global, global, factor, 0);
  const double delta = 0.3;
  const Q mixture = product(power(factor, 1 - delta), power(quotient(tilted, rest), delta));
  expect_near(mixture, product(factor, power(fed_ep_delta(tilted, global), delta)));
}

TEST(FedEp, TheExactPosteriorIsAFixedPoint) {
  // Likelihoods inside the family: with exact factors every tilted distribution is the posterior.
  const Q prior = random_message(3, 9);
  std::vector<Q> likelihoods;
  Q global = prior;
  for (std::uint32_t k = 0; k < 5; ++k) {
    likelihoods.push_back(random_message(3, k));
    global = product(global, likelihoods.back());
  }
  for (const Q& likelihood : likelihoods) {
    const Q rest = cavity(CavityKind::own_factor, global, prior, likelihood, 0);
    const Q delta = fed_ep_delta(product(rest, likelihood), global);
    expect_near(delta, flat_like(delta.eta(), Family::diagonal));
  }
}

TEST(Damping, HasItsFourRules) {
  EXPECT_DOUBLE_EQ(damping({.rule = DampingRule::one_over_k}, 20, 7), 0.05);
  EXPECT_DOUBLE_EQ(damping({.rule = DampingRule::constant, .constant = 0.3}, 20, 7), 0.3);
  EXPECT_DOUBLE_EQ(damping({.rule = DampingRule::none}, 20, 7), 1);
  // linspace(0.5, 1/K, K)[min(K-1, t)]
  const DampingSettings decaying{.rule = DampingRule::decaying};
  EXPECT_DOUBLE_EQ(damping(decaying, 5, 0), 0.5);
  EXPECT_DOUBLE_EQ(damping(decaying, 5, 2), 0.35);
  EXPECT_DOUBLE_EQ(damping(decaying, 5, 4), 0.2);
  EXPECT_DOUBLE_EQ(damping(decaying, 5, 1000), 0.2);
  EXPECT_DOUBLE_EQ(damping(decaying, 1, 3), 0.5);
  EXPECT_THROW(damping({}, 0, 0), InputError);
  EXPECT_THROW(damping({.rule = DampingRule::constant, .constant = 0}, 3, 0), InputError);
}

TEST(Cooldown, LeavesWholeStepsThenALineThenWhatStays) {
  const CooldownSettings settings{.after = 10, .rounds = 4, .to = 0.2};
  for (const int round : {0, 5, 9}) EXPECT_DOUBLE_EQ(cooldown(settings, round), 1);
  EXPECT_DOUBLE_EQ(cooldown(settings, 10), 0.8);
  EXPECT_DOUBLE_EQ(cooldown(settings, 11), 0.6);
  EXPECT_DOUBLE_EQ(cooldown(settings, 12), 0.4);
  for (const int round : {13, 14, 1000}) EXPECT_DOUBLE_EQ(cooldown(settings, round), 0.2);
  EXPECT_DOUBLE_EQ(cooldown({.after = 0, .rounds = 1, .to = 0}, 0), 0);
}

TEST(Algorithms, AreFoundByNameAndAnUnknownOneGetsASuggestion) {
  for (const Algorithm& algorithm : algorithms()) {
    EXPECT_EQ(&find_algorithm(algorithm.name), &algorithm);
    EXPECT_FALSE(algorithm.summary.empty());
    EXPECT_FALSE(algorithm.title.empty());
  }
  try {
    find_algorithm("fed_epp");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean fed_ep?"), std::string::npos);
  }
}

// A factor's precision says how many examples it has seen; weights by examples would count them
// twice. A point has no precision, so its weight has to say it.
TEST(Algorithms, CountExamplesOnceByPrecisionOrByWeight) {
  for (const char* name : {"fed_ep", "fed_sep"}) {
    EXPECT_EQ(find_algorithm(name).weight, WeightRule::equal);
    EXPECT_FALSE(find_algorithm(name).point_estimate);
  }
  for (const char* name : {"fed_avg", "fed_pa"}) {
    EXPECT_EQ(find_algorithm(name).weight, WeightRule::examples);
    EXPECT_TRUE(find_algorithm(name).point_estimate);
  }
}

TEST(AdmmStep, IsBetweenWhatClientsSayAndTheProductOfTheirFactors) {
  const Q q = random_message(3, 1), delta = random_message(3, 2), factors = random_message(3, 3);
  const AdmmWeights weights = admm_weights(false, 0.5, 4);
  EXPECT_DOUBLE_EQ(weights.near, 2.0 / 3);
  EXPECT_DOUBLE_EQ(weights.pull, 1.0 / 3);
  const Q next = admm_step(weights, q, delta, factors);
  expect_near(next, {2.0 / 3 * (q.eta() + delta.eta()) + 1.0 / 3 * factors.eta(),
                     2.0 / 3 * (q.lambda_vector() + delta.lambda_vector()) +
                         1.0 / 3 * factors.lambda_vector()});
  expect_near(admm_step(weights, q, Q(V(3), V(3)), q), q);  // where all agree
}

TEST(AdmmStep, OfPointEstimatesAddsTheDualsMeanAndKeepsPrecisionOne) {
  const AdmmWeights weights = admm_weights(true, 1, 4);
  const Q next = admm_step(weights, Q(V{1, 2}, 1.0), Q(V{0.5, 0}, 0.0), Q(V{4, -8}, 0.0));
  EXPECT_EQ(next, Q(V{2.5, 0}, 1.0));
}

// What add_delta() adds, in words.
struct Added {
  Message delta;

  void add_quotient(const Message& tilted, const std::optional<Message>& divisor) {
    delta = fed_ep_delta(tilted, divisor.value_or(global));
  }
  void add_move(const HostVector<float>& to) { delta = fed_avg_delta(to, mean(global)); }
  void add_points(const HostVector<float>& eta) { delta = {eta, 0.0f}; }

  Message global = from_mean(HostVector<float>{1, 2}, 1.0f);
};

TEST(Algorithms, EachMakesItsDeltaOfWhatItNeeds) {
  ClientRun run{.last = {2, 4}, .samples = {}, .tilted = Message({3, 3}, 2.0f)};
  const auto delta_of = [&](const char* name, std::optional<Message> divisor = {}) {
    Added rows;
    add_delta(find_algorithm(name), run, std::move(divisor), mean(rows.global), {}, rows);
    return rows.delta;
  };
  const Message moved({1, 2}, 0.0f);
  EXPECT_EQ(delta_of("fed_avg"), moved);
  // Without samples yet FedPA is FedAvg; with one it moves to that sample.
  EXPECT_EQ(delta_of("fed_pa"), moved);
  run.samples = {{0, 0}};
  EXPECT_EQ(delta_of("fed_pa"), Message({-1, -2}, 0.0f));
  EXPECT_EQ(delta_of("fed_ep"), Message({2, 1}, 1.0f));
  EXPECT_EQ(delta_of("fed_sep"), Message({2, 1}, 1.0f));
  EXPECT_EQ(delta_of("fed_ep", Message({1, 1}, 0.5f)), Message({2, 2}, 1.5f));
}

TEST(Algorithms, FedPaShrinksByItsSettingsRho) {
  using F = HostVector<float>;
  const std::vector<F> samples{{0, 1}, {2, 5}, {4, -3}};
  for (const double rho : {0.0, 0.25, 4.0}) {
    Added rows;
    const F start = mean(rows.global);
    add_delta(find_algorithm("fed_pa"), ClientRun{.last = {9, 9}, .samples = samples, .tilted = {}},
              std::optional<Message>(), start, {.rho = rho}, rows);
    EXPECT_EQ(rows.delta, Message(posterior_delta(std::span<const F>(samples), start, rho), 0.0f));
  }
}

}  // namespace
}  // namespace fedep
