// What chains do to a stripe of one row, in registers: steps with and without a gradient, samples.
// For loops within at_full_width(); row_store.cpp has them.
#pragma once

#include <cstddef>
#include <cstring>

#include "fedep/sim/sparse/row_store.h"

namespace fedep::row_moves {

// A record's part in a register: a stripe is as wide as the widest of them.
using Lanes [[gnu::vector_size(64)]] = float;
static_assert(sizeof(Lanes) == kStripe * sizeof(float));
constexpr std::size_t kMomentum = kStripe, kEta = 2 * kStripe;  // in a record; theta is at 0

// By reference: passed by value, vectors would be another convention on every CPU.
[[gnu::always_inline]] inline void load(const float* from, Lanes& x) {
  std::memcpy(&x, from, sizeof x);
}
[[gnu::always_inline]] inline void store(const Lanes& x, float* to) {
  std::memcpy(to, &x, sizeof x);
}

// What moves with every step.
struct Moving {
  Lanes theta, momentum, sum, eta, lambda;
};

// Steps without gradient. (The map of no step changes nothing: to ask whether there are any would
// take longer, as it is hard to guess.)
template <bool kIsotropic, bool kSums>
[[gnu::always_inline]] inline void wait(const RowLaw& law, std::size_t steps, Moving& row) {
  if constexpr (kIsotropic) {
    const RowMap& map = law.maps[steps];
    const float k = float(steps), lambda = law.lambda;
    const Lanes r = lambda * row.theta - row.eta, m = row.momentum;
    if constexpr (kSums) {
      row.sum += k * row.theta - map.sum_by_r * r - map.sum_by_m * m;
    }
    row.theta -= map.by_r * r + map.by_m * m;
    row.momentum = map.m_by_r * r + map.m_by_m * m;
  } else {
    const float mu = law.numbers.momentum, lr = law.numbers.lr, n = law.numbers.per_example;
    for (std::size_t step = 0; step < steps; ++step) {
      row.momentum = mu * row.momentum + (row.lambda * row.theta - row.eta) * n;
      row.theta -= lr * row.momentum;
      if constexpr (kSums) row.sum += row.theta;
    }
  }
}

// A step down the gradient, and steps without one.
template <bool kIsotropic, bool kSums>
[[gnu::always_inline]] inline void descend_row(const RowLaw& law, const Lanes& gradient,
                                               std::size_t free_steps, Moving& row) {
  if constexpr (kIsotropic) {
    const GradientMap& map = law.gradient_maps[free_steps];
    const float lambda = law.lambda;
    const Lanes theta = row.theta, m = row.momentum, g = gradient;
    const Lanes r = lambda * theta - row.eta;
    if constexpr (kSums) {
      row.sum += map.steps * theta - (map.sum_by_r * r + map.sum_by_m * m + map.sum_by_g * g);
    }
    row.theta = theta - (map.by_r * r + map.by_m * m + map.by_g * g);
    row.momentum = map.m_by_r * r + map.m_by_m * m + map.m_by_g * g;
  } else {
    const float mu = law.numbers.momentum, lr = law.numbers.lr, n = law.numbers.per_example;
    row.momentum = mu * row.momentum + gradient + (row.lambda * row.theta - row.eta) * n;
    row.theta -= lr * row.momentum;
    if constexpr (kSums) row.sum += row.theta;
    wait<kIsotropic, kSums>(law, free_steps, row);
  }
}

// The next of a row's samples.
template <bool kSums>
[[gnu::always_inline]] inline void add_sample(const ChainEvent& event, const Moving& row,
                                              float* mean, float* squares) {
  Lanes means{}, about{};
  if (event.sample > 1) load(mean, means);
  if (squares != nullptr && event.sample > 1) load(squares, about);
  const float weight = 1.0f / float(event.sample);
  [[maybe_unused]] const float steps = float(event.epoch_steps);
  Lanes x = row.theta;
  if constexpr (kSums) x = event.epoch_steps > 0 ? row.sum / steps : x;
  if (event.sample == 1) {
    means = x;
    about = Lanes{};
  } else {
    const Lanes gap = x - means;
    means += weight * gap;
    if (squares != nullptr) about += gap * (x - means);
  }
  store(means, mean);
  if (squares != nullptr) store(about, squares);
}

// Where a record's parts are.
struct Record {
  [[gnu::always_inline]] inline Record(float* r, const RecordOffsets& at)
      : theta(r),
        momentum(r + kMomentum),
        eta(r + kEta),
        lambda(r + at.lambda),
        sum(r + at.sum),
        mean(r + at.mean),
        squares(at.squares > 0 ? r + at.squares : nullptr) {}
  float *theta, *momentum, *eta, *lambda, *sum, *mean, *squares;
};

template <bool kIsotropic, bool kSums>
[[gnu::always_inline]] inline void load_moving(const Record& record, Moving& row) {
  load(record.theta, row.theta);
  load(record.momentum, row.momentum);
  load(record.eta, row.eta);
  if constexpr (!kIsotropic) load(record.lambda, row.lambda);
  if constexpr (kSums) load(record.sum, row.sum);
}
template <bool kSums>
[[gnu::always_inline]] inline void store_moving(const Moving& row, const Record& record) {
  store(row.theta, record.theta);
  store(row.momentum, record.momentum);
  if constexpr (kSums) store(row.sum, record.sum);
}

// From one clock's time to another's.
template <bool kIsotropic, bool kSums>
[[gnu::always_inline]] inline void travel(const RowLaw& law, const RowClock& from,
                                          const RowClock& to, const Record& record, Moving& row) {
  std::size_t now = from.step;
  for (std::size_t e = from.event; e < to.event; ++e) {
    const ChainEvent& event = law.events[e];
    wait<kIsotropic, kSums>(law, event.step - now, row);
    now = event.step;
    if (event.sample > 0) {
      add_sample<kSums>(event, row, record.mean, record.squares);
    } else if constexpr (kSums) {
      row.sum = Lanes{};
    }
  }
  wait<kIsotropic, kSums>(law, to.step - now, row);
}

}  // namespace fedep::row_moves
