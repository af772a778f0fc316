#include "fedep/round/diagnosis/start_left.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "fedep/algorithm/damping.h"
#include "fedep/round/round_parts.h"

namespace fedep {
namespace {

bool is_linear(const OptimizerSettings& optimizer) { return optimizer.name == "sgd"; }

std::vector<double> marginal_shares(const Message& q, double start) {
  const std::size_t d = q.size();
  const std::span<const float> elements = q.lambda_span();
  Packed<HostVector<double>> all{HostVector<double>(elements.size())};
  std::ranges::copy(elements, all.elements.span().begin());
  Packed<HostVector<double>> rest = all;
  for (std::size_t i = 0; i < d; ++i) rest.elements[packed_index(i, i)] -= start;
  std::vector<double> shares(d, 1.0);
  if (!is_positive_definite(all, d) || !is_positive_definite(rest, d)) return shares;
  const HostVector<double> with = inverse_diagonal(all, d), without = inverse_diagonal(rest, d);
  for (std::size_t i = 0; i < d; ++i) shares[i] = 1 - with[i] / without[i];
  return shares;
}

}  // namespace

bool begins_with_alpha(const Phase& phase) {
  return !phase.algorithm->point_estimate && phase.factors == FactorStart::carry_mean;
}

void StartLeft::Left::step(double delta, const OptimizerSettings& optimizer, double scale) {
  velocity = optimizer.momentum * velocity + delta;
  examples += optimizer.lr * scale * velocity;
}

StartLeft::StartLeft(const Phase& phase, const Population& population, std::uint64_t seed)
    : phase_(&phase),
      population_(&population),
      seed_(seed),
      known_(is_linear(phase.server_optimizer) && phase.algorithm->step == StepRule::optimizer),
      in_q_{.examples = double(population.examples())} {
  if (!phase.stateful()) return;
  known_ = known_ && is_linear(phase.factor_optimizer);
  for (std::size_t k = 0; k < population.size(); ++k) {
    in_factors_.push_back({.examples = double(population[k].examples)});
  }
}

void StartLeft::follow(const PlayedRound& played) {
  if (played.step_scale == 0 || !known_) return;
  if (!played.whole) {
    known_ = phase_->server_optimizer.momentum == 0;
    return;
  }
  const std::vector<ClientTask> tasks = make_tasks(
      sample_clients(seed_, played.round, population_->size(), phase_->clients_per_round), *phase_,
      *population_);
  const double delta =
      damping(phase_->damping, tasks.size(), std::size_t(played.round - phase_->first_round));
  const double scale = optimizer_scale(*phase_, played.round, delta) * played.step_scale;
  const double before = in_q_.examples;
  double sum = 0;
  std::vector<bool> visited(in_factors_.size(), false);
  for (const ClientTask& task : tasks) {
    if ((*population_)[task.client].examples == 0) continue;  // says nothing, whatever it is asked
    const double gamma = task.weight * (phase_->damping.outside ? 1.0 : delta);
    switch (phase_->cavity) {
      case CavityKind::own_factor: {
        Left& left = in_factors_[task.client];
        const double taken = -gamma * left.examples;
        left.step(taken, phase_->factor_optimizer, scale);
        visited[task.client] = true;
        sum += taken;
        break;
      }
      case CavityKind::share:
        sum -= gamma * task.share * before;
        break;
      case CavityKind::flat:
        sum -= gamma * before;
        break;
      case CavityKind::whole:
      case CavityKind::proximal:  // of point estimates, which have no precision to begin with
      case CavityKind::dual:
        break;
    }
  }
  in_q_.step(sum, phase_->server_optimizer, scale);
  if (!phase_->follows_rounds()) return;
  for (std::size_t k = 0; k < in_factors_.size(); ++k) {
    if (!visited[k]) in_factors_[k].step(0, phase_->factor_optimizer, scale);
  }
}

double StartLeft::precision() const {
  if (!known_) return std::numeric_limits<double>::quiet_NaN();
  return phase_->alpha * std::abs(in_q_.examples);
}

std::vector<double> start_shares(const Message& q, double start) {
  if (q.full()) return marginal_shares(q, start);
  std::vector<double> shares;
  for (const float lambda : q.lambda_span()) {
    shares.push_back(double(lambda) > start ? start / double(lambda) : 1.0);
  }
  return shares;
}

}  // namespace fedep
