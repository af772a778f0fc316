#include "fedep/round/diagnosis/convergence.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <span>
#include <utility>

#include "fedep/algorithm/damping.h"

namespace fedep {
namespace {

constexpr std::int64_t kFewLost = 10;  // one in so many rounds

struct Moments {
  HostVector<float> mean, deviation;  // empty: q is improper
};

bool is_usable(float mean, float deviation) {
  return std::isfinite(mean) && std::isfinite(deviation) && deviation > 0;
}

// Both are solved for in double, deviations those of the solved covariance.
Moments solved_moments(const Message& q) {
  if (!is_proper(q)) return {};
  Moments out{mean(q), variance(q)};
  for (std::size_t i = 0; i < q.size(); ++i) {
    out.deviation[i] = std::sqrt(out.deviation[i]);
    if (!is_usable(out.mean[i], out.deviation[i])) return {};
  }
  return out;
}

// One pass over what may be millions of weights.
Moments moments_of(const Message& q) {
  if (q.full()) return solved_moments(q);
  const std::span<const float> eta = q.eta().span(), lambda = q.lambda_span();
  Moments out{HostVector<float>(q.size()), HostVector<float>(q.size())};
  const std::span<float> mean = out.mean.span(), deviation = out.deviation.span();
  for (std::size_t i = 0; i < eta.size(); ++i) {
    const float precision = lambda[q.isotropic() ? 0 : i];
    mean[i] = eta[i] / precision;
    deviation[i] = std::sqrt(1 / precision);
    if (!is_usable(mean[i], deviation[i])) return {};
  }
  return out;
}

// How far those have to go yet that moved furthest in the window before.
std::optional<MovesLeft> moves_left(const ConvergenceState& old, const ConvergenceState& now) {
  const auto size = std::int64_t(old.mean.size());
  const auto is_known = [&](const FurthestMove& move) {
    return move.coordinate >= 0 && move.coordinate < size;
  };
  if (!is_known(old.mean_at) || !is_known(old.log_sd_at) || now.mean.size() != old.mean.size()) {
    return std::nullopt;
  }
  const auto i = std::size_t(old.mean_at.coordinate), j = std::size_t(old.log_sd_at.coordinate);
  const double mean_by = (double(now.mean[i]) - double(old.mean[i])) / double(now.deviation[i]);
  const double log_sd_by = std::log(double(now.deviation[j]) / double(old.deviation[j]));
  return MovesLeft{.mean = left_to_go(old.mean_at.by, mean_by),
                   .log_sd = left_to_go(old.log_sd_at.by, log_sd_by)};
}

// Whether these rounds differ in nothing that could make q move less.
bool are_alike(const Phase& phase, std::int64_t first, std::int64_t end) {
  const auto strides = [&](std::int64_t round) {
    const Phase now = phase_in_round(phase, round).value_or(phase);
    return std::array{server_rate(phase, round), now.client_rate, now.clip, now.inference.alpha};
  };
  const auto same = strides(first);
  for (std::int64_t round = first + 1; round < end; ++round) {
    if (strides(round) != same) return false;
  }
  return true;
}

}  // namespace

double server_rate(const Phase& phase, std::int64_t round) {
  const double delta = damping(phase.damping, phase.clients_per_round,
                               std::size_t(std::max<std::int64_t>(0, round - phase.first_round)));
  const double inside = phase.damping.outside ? 1.0 : delta;
  return phase.server_optimizer.lr * inside * optimizer_scale(phase, round, delta);
}

std::int64_t window_length(const Phase& phase, std::size_t clients, std::int64_t round) {
  constexpr double kFewest = 2, kMost = double(kEndless);
  constexpr double kVisits = 10;
  constexpr double kRounding = 1e-9;  // 4.0000000001 rounds are 4
  const double between = double(clients) / double(phase.clients_per_round);  // visits of a client
  double rounds = kVisits * between;
  if (phase.server_optimizer.name == "sgd") {
    const double rate = server_rate(phase, round);
    if (!(rate > 0)) return kEndless;
    rounds = between * (1 - phase.server_optimizer.momentum) / rate;
  }
  return std::int64_t(std::clamp(std::ceil(rounds * (1 - kRounding)), kFewest, kMost));
}

Moved moved(const HostVector<float>& mean_before, const HostVector<float>& deviation_before,
            const HostVector<float>& mean, const HostVector<float>& deviation) {
  if (mean_before.size() != mean.size() || mean.size() == 0) {
    return {.mean = ConvergenceState::kFar, .log_sd = ConvergenceState::kFar};
  }
  double furthest = 0, widest = 1, narrowest = 1;  // deviations' ratios
  std::size_t of_mean = 0, of_widest = 0, of_narrowest = 0;
  for (std::size_t i = 0; i < mean.size(); ++i) {
    const double now = double(deviation[i]);
    const double by = (double(mean[i]) - double(mean_before[i])) / now;
    if (std::fabs(by) > std::fabs(furthest)) furthest = by, of_mean = i;
    const double ratio = now / double(deviation_before[i]);
    if (ratio > widest) widest = ratio, of_widest = i;
    if (ratio < narrowest) narrowest = ratio, of_narrowest = i;
  }
  const bool narrower = -std::log(narrowest) > std::log(widest);
  const double log_sd = std::log(narrower ? narrowest : widest);
  return {.mean = std::fabs(furthest),
          .log_sd = std::fabs(log_sd),
          .mean_at = {std::int64_t(of_mean), furthest},
          .log_sd_at = {std::int64_t(narrower ? of_narrowest : of_widest), log_sd}};
}

double left_to_go(double before, double now) {
  constexpr double kSlowest = 0.99;  // closer to 1 two moves do not tell
  const double ratio = std::min(now / before, kSlowest);
  return ratio > 0 ? std::fabs(now) * ratio / (1 - ratio) : 0;
}

bool creeps(std::optional<double> left_before, std::optional<double> left_latest,
            double less_than) {
  const double most = kLeft * less_than;
  return left_latest && *left_latest >= most && left_before.value_or(*left_latest) >= most;
}

void begin_window(ServerState& state) {
  ConvergenceState& window = state.convergence;
  if (window.begun >= 0) return;
  Moments now = moments_of(state.global);
  window.begun = state.round;
  window.lost = 0;
  window.mean = std::move(now.mean);
  window.deviation = std::move(now.deviation);
}

void count_round(ServerState& state, const RoundNumbers& numbers) {
  const bool whole = numbers.answered > 0 && numbers.outside_grid == 0 && numbers.step_scale > 0;
  state.convergence.lost += whole ? 0 : 1;
}

bool window_is_over(const ServerState& state, const Phase& phase, std::size_t clients) {
  const std::int64_t begun = state.convergence.begun;
  return begun >= 0 && state.round - begun >= window_length(phase, clients, begun);
}

WindowNumbers end_window(ServerState& state, const Phase& phase) {
  ConvergenceState& window = state.convergence;
  const ConvergenceState old = std::move(window);
  window = {};
  begin_window(state);
  const Moved by = moved(old.mean, old.deviation, window.mean, window.deviation);
  const bool judged =
      are_alike(phase, old.begun, state.round) && kFewLost * old.lost <= state.round - old.begun;
  std::optional<MovesLeft> left;
  if (judged) {
    left = moves_left(old, window);
    window.before = old.latest;
    window.latest = std::max(by.mean, by.log_sd);
    window.mean_at = by.mean_at;
    window.log_sd_at = by.log_sd_at;
    window.left_before = old.left_latest;
    if (left) window.left_latest = left->most();
  }
  return {.ends = true,
          .mean_moved = by.mean,
          .log_sd_moved = by.log_sd,
          .judged = judged,
          .left = left};
}

bool has_converged(const ServerState& state, double less_than) {
  const ConvergenceState& window = state.convergence;
  const bool still = window.before < less_than && window.latest < less_than;
  return window.begun == state.round && still &&
         !creeps(window.left_before, window.left_latest, less_than);
}

}  // namespace fedep
