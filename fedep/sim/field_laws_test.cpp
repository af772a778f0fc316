// The algorithms of the field against the closed forms of their papers, where clients' losses are
// quadratics that are solved without error: where each stands still, the rounds as a paper writes them,
// and which of them are one another. H_k and b_k: curvature and linear term of client k's sum of
// losses.

#include <cmath>
#include <memory>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <Eigen/Dense>

#include "fedep/round/diagnosis/factor_gap.h"
#include "fedep/round/test_federation.h"
#include "fedep/sim/test_quadratic_clients.h"

namespace fedep {
namespace {

using Eigen::MatrixXd;
using Eigen::VectorXd;

const std::vector<std::size_t> kUnequal{20, 35, 50, 15};
constexpr double kPrior = 2;        // precision
constexpr double kPriorMean = 0.5;  // of every coordinate

Phase field_phase(std::string_view algorithm, std::string_view method, std::size_t asked) {
  Phase phase{.algorithm = &find_algorithm(algorithm),
              .rounds = 100000,
              .family = Family::isotropic,
              .cavity = find_algorithm(algorithm).cavity,
              .weight = find_algorithm(algorithm).weight,
              .factors = FactorStart::flat,
              .clients_per_round = asked};
  phase.inference.name = method;
  if (method == "laplace" || method == "ngvi") phase.family = Family::diagonal;
  if (phase.weight == WeightRule::examples) phase.damping.rule = DampingRule::none;
  if (phase.algorithm->step == StepRule::admm) phase.damping.rule = DampingRule::none;
  return phase;
}

class FieldRun {
 public:
  FieldRun(const std::vector<std::size_t>& sizes, Phase chosen, bool with_a_prior = true)
      : clients(sizes), population(clients.population()), phase(std::move(chosen)) {
    const ServerSettings server = with_a_prior ? with_prior(kPriorMean, kPrior) : ServerSettings{};
    state = begin_phase(initial_server_state(server, V{0.3f, -0.2f, 0.1f}), phase, 0, population);
  }

  void play(int rounds = 1) {
    for (int i = 0; i < rounds; ++i) play_round(state, phase, 5, population, executor);
  }
  std::size_t size() const { return population.size(); }
  double n(std::size_t k) const { return double(population[k].examples); }
  const Quadratic& of(std::size_t k) const { return clients.of(population[k].key); }
  VectorXd mean() const { return to_eigen(point_estimate(state).span()); }
  VectorXd lambda() const { return to_eigen(state.global.lambda_full().span()); }

  QuadraticClients clients;
  Population population;
  Phase phase;
  std::unique_ptr<SiteStore> sites = make_memory_store();
  InPlace in_place{population, clients, *sites};
  WithFaults<V> executor{in_place};
  ServerState state;
};

// Prior and likelihoods, each counted `part`, together.
struct Pooled {
  MatrixXd precision = kPrior * MatrixXd::Identity(3, 3);
  VectorXd eta = VectorXd::Constant(3, kPrior* kPriorMean);

  explicit Pooled(const FieldRun& run, double part = 1) {
    for (std::size_t k = 0; k < run.size(); ++k) {
      precision += part * run.of(k).h;
      eta += part * run.of(k).b;
    }
  }
  VectorXd mean() const { return precision.ldlt().solve(eta); }
  VectorXd diagonal() const { return precision.diagonal(); }
};

void expect_close(const VectorXd& a, const VectorXd& b, double relative = 2e-5) {
  EXPECT_LT((a - b).norm(), relative * (1 + b.norm())) << a.transpose() << "\n" << b.transpose();
}

// --- FedProx and FedSEP (I)

TEST(FedProx, WithoutPullIsFedAvgToTheBit) {
  Phase prox = field_phase("fed_prox", "", 3);
  FieldRun pulled(kUnequal, prox, false), free(kUnequal, field_phase("fed_avg", "", 3), false);
  pulled.play(5);
  free.play(5);
  EXPECT_EQ(pulled.state.global, free.state.global);
}

// θ = Σ w_k θ_k with θ_k = (H_k + mu N_k)⁻¹ (b_k + mu N_k θ): between FedAvg's answer and the pooled one.
TEST(FedProx, StandsStillWhereItsClientsAnswersAverageToTheQuestion) {
  for (const double mu : {0.02, 0.5, 20.0}) {
    Phase phase = field_phase("fed_prox", "", 4);
    phase.mu = mu;
    FieldRun run(kUnequal, phase, false);
    run.play(int(400 + 200 * mu));
    MatrixXd left = MatrixXd::Identity(3, 3);
    VectorXd right = VectorXd::Zero(3);
    double n = 0;
    for (std::size_t k = 0; k < run.size(); ++k) n += run.n(k);
    for (std::size_t k = 0; k < run.size(); ++k) {
      const double pull = mu * run.n(k);
      const MatrixXd inverse = (run.of(k).h + pull * MatrixXd::Identity(3, 3)).inverse();
      left -= run.n(k) / n * pull * inverse;
      right += run.n(k) / n * inverse * run.of(k).b;
    }
    expect_close(run.mean(), left.fullPivLu().solve(right), 1e-4);
  }
}

// FedSEP (I) of clients of one size, with a flat prior and q as a hand-over makes it: precisions stay
// α N, cavities have α (N - N_k) around q's mean. That is FedProx with mu = α (N/N_k - 1), equal weights
// and δ = 1/K, in every round and whoever is asked; what differs with chains is that FedSEP answers
// with the mean of its chain's samples.
TEST(FedProx, IsFedSepWithScaledIdentityWhereClientsAreOfOneSize) {
  const std::vector<std::size_t> sizes(5, 25);
  constexpr double kAlpha = 0.08;
  Phase sep = field_phase("fed_sep", "scaled_identity", 3);
  sep.factors = FactorStart::carry_mean;
  sep.alpha = sep.inference.alpha = kAlpha;
  Phase prox = field_phase("fed_prox", "", 3);
  prox.mu = kAlpha * (5 - 1);
  prox.weight = WeightRule::equal;
  prox.damping.rule = DampingRule::one_over_k;
  FieldRun a(sizes, sep, false), b(sizes, prox, false);
  for (int round = 0; round < 30; ++round) {
    a.play();
    b.play();
    expect_close(a.mean(), b.mean(), 1e-5);
    EXPECT_NEAR(a.lambda()[0], kAlpha * 125, 1e-4);
  }
}

// --- FedDyn and FedEP (I)

// As Acar+21 (Algorithm 1) writes it: mean losses L_k, gradients g_k, the server's h.
TEST(FedDyn, PlaysThePapersRounds) {
  Phase phase = field_phase("fed_dyn", "", 3);
  phase.mu = 0.7;
  FieldRun run(kUnequal, phase, false);
  VectorXd theta = run.mean(), h = VectorXd::Zero(3);
  std::vector<VectorXd> g(4, VectorXd::Zero(3));
  for (int round = 0; round < 25; ++round) {
    const std::vector<std::size_t> asked = sample_clients(5, round, 4, 3);
    VectorXd sum = VectorXd::Zero(3);
    VectorXd moved = VectorXd::Zero(3);
    for (const std::size_t k : asked) {
      const MatrixXd a = run.of(k).h / run.n(k) + phase.mu * MatrixXd::Identity(3, 3);
      const VectorXd answer = a.ldlt().solve(run.of(k).b / run.n(k) + g[k] + phase.mu * theta);
      g[k] -= phase.mu * (answer - theta);
      sum += answer;
      moved += answer - theta;
    }
    h -= phase.mu / 4 * moved;
    theta = sum / 3 - h / phase.mu;
    run.play();
    expect_close(run.mean(), theta, 1e-5);
  }
}

TEST(FedDyn, StandsStillAtTheMinimumOfClientsMeanLossesWhoeverIsAsked) {
  for (const std::size_t asked : {std::size_t(1), std::size_t(2), std::size_t(4)}) {
    Phase phase = field_phase("fed_dyn", "", asked);
    phase.mu = 0.6;
    FieldRun run(kUnequal, phase, false);
    run.play(600);
    MatrixXd h = MatrixXd::Zero(3, 3);
    VectorXd b = VectorXd::Zero(3);
    for (std::size_t k = 0; k < run.size(); ++k) {
      h += run.of(k).h / run.n(k);
      b += run.of(k).b / run.n(k);
    }
    expect_close(run.mean(), h.ldlt().solve(b), 1e-4);
    EXPECT_LT(to_eigen(run.state.factors.eta().span()).norm(),
              1e-3);  // gradients add up to nothing
    EXPECT_EQ(run.state.global.lambda_scalar(), 1.0f);
  }
}

// With all m clients of one size asked, a flat prior and δ = 1/m, FedEP (I) asks its clients what
// FedDyn with mu = α (m - 1) asks, if duals take 1/(m - 1) of FedDyn's step. q's mean is then the mean
// of FedDyn's answers, and FedDyn's θ is ahead of it by S/m. So for two clients they are one
// algorithm, and for more FedEP's factors are slower.
void compare_with_fed_ep(std::size_t m, double dual_rate, bool same) {
  constexpr double kAlpha = 0.1;
  const std::vector<std::size_t> sizes(m, 30);
  Phase ep = field_phase("fed_ep", "scaled_identity", m);
  ep.factors = FactorStart::carry_mean;
  ep.alpha = ep.inference.alpha = kAlpha;
  Phase dyn = field_phase("fed_dyn", "", m);
  dyn.mu = kAlpha * double(m - 1);
  dyn.damping = {.rule = DampingRule::constant, .constant = dual_rate};
  FieldRun a(sizes, ep, false), b(sizes, dyn, false);
  double apart = 0;
  for (int round = 0; round < 20; ++round) {
    a.play();
    b.play();
    const VectorXd answers = b.mean() - to_eigen(b.state.factors.eta().span()) / double(m);
    apart = std::max(apart, (a.mean() - answers).norm());
  }
  EXPECT_EQ(apart < 1e-5, same) << m << " clients: " << apart;
  if (!same) {
    EXPECT_GT(apart, 1e-2);
  }
}
TEST(FedDyn, IsFedEpWithScaledIdentityForTwoClientsAndWithSlowerDualsForMore) {
  compare_with_fed_ep(2, 1, true);
  for (const std::size_t m : {std::size_t(3), std::size_t(6)}) {
    compare_with_fed_ep(m, 1 / double(m - 1), true);
    compare_with_fed_ep(m, 1, false);
  }
}

// --- PVI, FedLap, FedLap-Cov

// Both in one round of all, damped, and one after another undamped.
TEST(Pvi, StandsStillAtThePooledVariationalPosterior) {
  for (const std::size_t asked : {std::size_t(1), std::size_t(2), std::size_t(4)}) {
    FieldRun run(kUnequal, field_phase("pvi", "ngvi", asked));  // δ = 1/K
    run.play(400);
    const Pooled pooled(run);
    expect_close(run.mean(), pooled.mean());
    expect_close(run.lambda(), pooled.diagonal());  // the minimum of KL(q ‖ posterior)
  }
}

TEST(Pvi, IsExactInTheFullFamilyOnceEverybodyWasAskedOneAfterAnother) {
  Phase phase = field_phase("pvi", "ngvi", 1);
  phase.family = Family::full;
  FieldRun run(kUnequal, phase);
  std::set<std::size_t> seen;
  for (int round = 0; seen.size() < run.size(); ++round) {
    seen.insert(sample_clients(5, round, run.size(), 1)[0]);
    run.play();
  }
  const Pooled pooled(run);
  expect_close(run.mean(), pooled.mean());
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      EXPECT_NEAR(run.state.global.lambda_span()[packed_index(i, j)],
                  pooled.precision(Eigen::Index(i), Eigen::Index(j)), 1e-3);
    }
  }
}

// Swaroop+25: v_k ← v_k + ρ δ (w_k - w), w = (δ w_0 + Σ v_k) / δ, w_k the minimum of client k's losses
// + v_k·w + (δ/2) ‖w - w_g‖².
TEST(FedLap, PlaysThePapersRoundsAndEndsAtTheMapEstimate) {
  Phase phase = field_phase("fed_lap", "map", 4);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.02};
  FieldRun run({8, 6, 5, 7}, phase);
  VectorXd w = VectorXd::Constant(3, kPriorMean);
  std::vector<VectorXd> v(4, VectorXd::Zero(3));
  for (int round = 0; round < 4000; ++round) {
    VectorXd next = w;
    for (std::size_t k = 0; k < 4; ++k) {
      const MatrixXd a = run.of(k).h + kPrior * MatrixXd::Identity(3, 3);
      const VectorXd answer = a.ldlt().solve(run.of(k).b + kPrior * w - v[k]);
      v[k] += 0.02 * kPrior * (answer - w);
      next += 0.02 * (answer - w);
    }
    w = next;
    run.play();
    if (round % 100 == 3) expect_close(run.mean(), w, 1e-4);
  }
  expect_close(run.mean(), Pooled(run).mean(), 1e-4);
  EXPECT_EQ(run.state.global.lambda_scalar(), float(kPrior));
}

// c_k = (S w - v_k, S - V_k), S_k = S - V_k + H_k, v_k ← v_k + ρ (S_k w_k - S w), V_k ← (1-ρ) V_k + ρ H_k.
TEST(FedLapCov, PlaysThePapersRoundsAndEndsAtThePooledLaplace) {
  Phase phase = field_phase("fed_lap_cov", "laplace", 4);
  phase.damping = {.rule = DampingRule::constant, .constant = 0.25};
  FieldRun run(kUnequal, phase);
  std::vector<VectorXd> v(4, VectorXd::Zero(3)), precision(4, VectorXd::Zero(3));
  VectorXd s = VectorXd::Constant(3, kPrior), eta = VectorXd::Constant(3, kPrior * kPriorMean);
  for (int round = 0; round < 200; ++round) {
    const VectorXd w = eta.cwiseQuotient(s), before = s, eta_before = eta;
    for (std::size_t k = 0; k < 4; ++k) {
      const VectorXd cavity = before - precision[k], hessian = run.of(k).h.diagonal();
      const MatrixXd a = run.of(k).h + MatrixXd(cavity.asDiagonal());
      const VectorXd answer = a.ldlt().solve(run.of(k).b + eta_before - v[k]);
      const VectorXd local = cavity + hessian;
      const VectorXd step = 0.25 * (local.cwiseProduct(answer) - before.cwiseProduct(w));
      v[k] += step;
      eta += step;
      s += 0.25 * (hessian - precision[k]);
      precision[k] += 0.25 * (hessian - precision[k]);
    }
    run.play();
    expect_close(run.mean(), eta.cwiseQuotient(s), 1e-4);
    expect_close(run.lambda(), s);
  }
  expect_close(run.mean(), Pooled(run).mean());
  expect_close(run.lambda(), Pooled(run).diagonal());
}

// --- BayesADMM

Phase admm_phase(double penalty, double dual_rate, std::size_t asked) {
  Phase phase = field_phase("bayes_admm", "ngvi", asked);
  phase.penalty = penalty;
  phase.damping = {.rule = DampingRule::constant, .constant = dual_rate * penalty};
  return phase;
}

// q_k ∝ q exp(-losses/(Tρ)) / s_k^(1/ρ), s_k ← s_k + γ ρ (q_k - q),
// q' = (1 - a)(mean of q_k) + a (λ_0 + Σ s_k), a = 1/(1 + ρ m).
TEST(BayesAdmm, PlaysThePapersRounds) {
  const double rho = 0.8, gamma = 0.3, temperature = 1.5;
  Phase phase = admm_phase(rho, gamma, 4);
  phase.temperature = temperature;
  FieldRun run(kUnequal, phase);
  const VectorXd first_eta = VectorXd::Constant(3, kPrior * kPriorMean);
  const VectorXd first_lambda = VectorXd::Constant(3, kPrior);
  VectorXd eta = first_eta, lambda = first_lambda;
  std::vector<VectorXd> s_eta(4, VectorXd::Zero(3)), s_lambda(4, VectorXd::Zero(3));
  for (int round = 0; round < 60; ++round) {
    VectorXd mean_eta = VectorXd::Zero(3), mean_lambda = VectorXd::Zero(3);
    for (std::size_t k = 0; k < 4; ++k) {
      const VectorXd cavity = lambda - s_lambda[k] / rho;
      const MatrixXd h = run.of(k).h / (temperature * rho);
      const VectorXd own_lambda = cavity + VectorXd(h.diagonal());
      const MatrixXd a = h + MatrixXd(cavity.asDiagonal());
      const VectorXd answer =
          a.ldlt().solve(run.of(k).b / (temperature * rho) + eta - s_eta[k] / rho);
      const VectorXd own_eta = own_lambda.cwiseProduct(answer);
      s_eta[k] += gamma * rho * (own_eta - eta);
      s_lambda[k] += gamma * rho * (own_lambda - lambda);
      mean_eta += own_eta / 4;
      mean_lambda += own_lambda / 4;
    }
    const double a = 1 / (1 + 4 * rho);
    eta = (1 - a) * mean_eta + a * first_eta;
    lambda = (1 - a) * mean_lambda + a * first_lambda;
    for (std::size_t k = 0; k < 4; ++k) {
      eta += a * s_eta[k];
      lambda += a * s_lambda[k];
    }
    run.play();
    expect_close(to_eigen(run.state.global.eta().span()), eta, 1e-4);
    expect_close(run.lambda(), lambda, 1e-4);
  }
}

// Where EP stands still: prior × likelihoods, each to the power of 1/T; also where some are asked, which
// the paper does not define.
TEST(BayesAdmm, StandsStillAtTheTemperedPosteriorWhoeverIsAsked) {
  for (const double temperature : {1.0, 2.0}) {
    for (const std::size_t asked : {std::size_t(1), std::size_t(3), std::size_t(4)}) {
      for (const double rho : {0.5, 1.0, 2.0}) {
        Phase phase = admm_phase(rho, 0.3, asked);
        phase.temperature = temperature;
        FieldRun run(kUnequal, phase);
        run.play(1500);
        const Pooled pooled(run, 1 / temperature);
        expect_close(run.mean(), pooled.mean(), 1e-4);
        expect_close(run.lambda(), pooled.diagonal(), 1e-4);
      }
    }
  }
}

TEST(BayesAdmm, KeepsThePriorTimesAllFactorsWhateverHappensToARound) {
  Phase phase = admm_phase(1.3, 0.4, 3);
  phase.guard.mode = GuardMode::back_off;
  phase.schedule.server_rate = RoundSchedule{.after = 5, .rounds = 10, .from = 1, .to = 0.3};
  FieldRun run(kUnequal, phase);
  for (int round = 0; round < 30; ++round) {
    run.executor.lost = round % 3 == 1 ? std::set<std::size_t>{0, 2} : std::set<std::size_t>{};
    run.play();
    const FactorGap gap = factor_gap(run.state, run.phase, run.population, *run.sites);
    EXPECT_LT(gap.eta, 1e-5);
    EXPECT_LT(gap.lambda, 1e-5);
  }
  EXPECT_NE(run.state.factors, run.state.global);
}

TEST(BayesAdmm, LeavesEverythingWhereNobodyAnswers) {
  FieldRun run(kUnequal, admm_phase(1, 0.5, 4));
  run.play(3);
  const ServerState before = run.state;
  run.executor.lost = {0, 1, 2, 3};
  run.play();
  EXPECT_EQ(run.state.global, before.global);
  EXPECT_EQ(run.state.factors, before.factors);
}

// --- FedIvon

// Nothing is taken out of q, so every round counts all data once more, each client's by its share:
// q_T = q_0 + T Σ w_k (b_k, H_k), for curvature along the axes.
TEST(FedIvon, CountsDataAgainInEveryRound) {
  Phase phase = field_phase("fed_ivon", "ngvi", 4);
  phase.family = Family::full;
  FieldRun run(kUnequal, phase);
  constexpr int kRounds = 7;
  run.play(kRounds);
  double n = 0;
  for (std::size_t k = 0; k < run.size(); ++k) n += run.n(k);
  MatrixXd precision = kPrior * MatrixXd::Identity(3, 3);
  VectorXd eta = VectorXd::Constant(3, kPrior * kPriorMean);
  for (std::size_t k = 0; k < run.size(); ++k) {
    precision += kRounds * run.n(k) / n * run.of(k).h;
    eta += kRounds * run.n(k) / n * run.of(k).b;
  }
  expect_close(run.mean(), precision.ldlt().solve(eta), 1e-4);
  EXPECT_NEAR(run.state.global.lambda_span()[0], precision(0, 0), 1e-3 * precision(0, 0));
}

// With cavities that are flat (their prior is then the clients' weight decay) a round forgets the last:
// q is the average of the clients' own posteriors.
TEST(FedIvon, WithFlatCavitiesIsTheAverageOfClientsOwnPosteriors) {
  Phase phase = field_phase("fed_ivon", "ngvi", 4);
  phase.cavity = CavityKind::flat;
  phase.family = Family::full;
  FieldRun run(kUnequal, phase);
  run.play(3);
  MatrixXd precision = MatrixXd::Zero(3, 3);
  VectorXd eta = VectorXd::Zero(3);
  for (std::size_t k = 0; k < run.size(); ++k) {
    precision += run.n(k) / 120 * run.of(k).h;
    eta += run.n(k) / 120 * run.of(k).b;
  }
  expect_close(run.mean(), precision.ldlt().solve(eta), 1e-4);
}

}  // namespace
}  // namespace fedep
