// The average of the server's means over rounds, beside q: clients never see it, draws and scores do.
// Its variance over those rounds is a spread around it, which is no posterior: intervals are never
// made of it.
//
//   follow_average(state.average, phase, round, point, q);      // after every round
//   if (state.average.rounds > 0) … state.average.mean …
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "fedep/message/gaussian.h"
#include "fedep/optim/average_element.h"
#include "fedep/round/phase.h"

namespace fedep {

template <Storage V>
struct ServerAverageOf {
  std::int64_t rounds = 0;  // that it is of; 0: there is none
  V mean;                   // of q's means
  V variance;               // of q's means about it
  // Of q's precisions, where the phase infers them: of every coordinate, or of all alike.
  V lambda;
  float lambda_number = 0;

  bool operator==(const ServerAverageOf&) const = default;
};
using ServerAverage = ServerAverageOf<HostVector<float>>;

// How many of the phase's rounds count in its average once rounds before `round` are over.
inline std::int64_t rounds_in_average(const Phase& phase, std::int64_t round) {
  if (!phase.average) return 0;
  const bool tail = phase.average->kind == AverageKind::tail;
  const std::int64_t first = tail ? phase.end_round() - phase.average->rounds : phase.first_round;
  return std::max<std::int64_t>(0, round - std::max(first, phase.first_round));
}

// Whether round `round` counts in the phase's average.
inline bool counts_in_average(const Phase& phase, std::int64_t round) {
  return rounds_in_average(phase, round + 1) > 0;
}

// The weight of the n-th round (from 1) in an average of n. Exponential: weights β^(n - t), of
// which the sum is made 1, with β = 1 - 1/rounds; so the first weighs no more than its own share.
inline double average_gain(const AverageSettings& settings, std::int64_t n) {
  if (settings.kind == AverageKind::tail || settings.rounds == 1) {
    return settings.kind == AverageKind::tail ? 1 / double(n) : 1.0;
  }
  const double beta = 1 - 1 / double(settings.rounds);
  return (1 - beta) / (1 - std::pow(beta, double(n)));
}

// mean and variance follow x; a variance without elements is not kept. Other storages bring their
// own.
inline void average_in(float gain, const HostVector<float>& x, HostVector<float>& mean,
                       HostVector<float>* variance) {
  const float* const from = x.span().data();
  float* const to = mean.span().data();
  if (variance == nullptr) {
    for (std::size_t i = 0; i < x.size(); ++i) to[i] = averaged(gain, from[i], to[i]);
    return;
  }
  float* const about = variance->span().data();
  for (std::size_t i = 0; i < x.size(); ++i) {
    about[i] = averaged_variance(gain, from[i], to[i], about[i]);
    to[i] = averaged(gain, from[i], to[i]);
  }
}

// After round `round`, which left q and its point estimate.
template <Storage V>
void follow_average(ServerAverageOf<V>& average, const Phase& phase, std::int64_t round,
                    const V& point, const Gaussian<V>& q) {
  if (!counts_in_average(phase, round)) return;
  const bool with_lambda = !phase.algorithm->point_estimate && phase.algorithm->infers_precision;
  if (average.rounds == 0) {
    average.mean = constant_like(point, 0.0f);
    average.variance = constant_like(point, 0.0f);
    if (with_lambda && !q.isotropic()) average.lambda = constant_like(point, 0.0f);
  }
  ++average.rounds;
  const float gain = float(average_gain(*phase.average, average.rounds));
  average_in(gain, point, average.mean, &average.variance);
  if (!with_lambda) return;
  if (q.isotropic()) {
    average.lambda_number = averaged(gain, q.lambda_scalar(), average.lambda_number);
  } else {
    average_in(gain, q.lambda_vector(), average.lambda, static_cast<V*>(nullptr));
  }
}

// What draws around the average are drawn from: its variance is that of the means and, where the
// phase infers precisions, what their average leaves open besides. Coordinates that did not move
// have a variance of 1e-20. Improper where an averaged precision is not positive: ask before drawing.
Message spread_around(const ServerAverage& average);

}  // namespace fedep
