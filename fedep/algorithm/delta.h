// The delta that an algorithm makes of a client's run, in the one form in which every place forms
// it: as something added to the rows of a cohort (round/rows.h). A place that never writes deltas
// down keeps the two sides of a difference instead.
//
//   last_iterate   (theta_last - theta, 0)             fed_avg.h
//   samples        (Σ̂⁻¹ (θ̄ - theta), 0)               fed_pa.h; before the first sample as above
//   tilted         q̂_{\k} / q                          fed_ep.h
#pragma once

#include <optional>
#include <span>
#include <utility>

#include "fedep/algorithm/algorithm.h"
#include "fedep/algorithm/client_run.h"
#include "fedep/algorithm/fed_pa.h"

namespace fedep {

// `start` is where the client's chain began, the mean of q; `divisor` what the tilted distribution
// is divided by, if that is not q. `rows` has
//
//   add_quotient(tilted, divisor)     add_move(to)     add_points(eta)
template <Storage V, class Rows>
void add_delta(const Algorithm& algorithm, ClientRunOf<V> run, std::optional<Gaussian<V>> divisor,
               const V& start, const DeltaSettings& settings, Rows& rows) {
  switch (algorithm.needs) {
    case Needs::tilted:
      return rows.add_quotient(std::move(run.tilted), std::move(divisor));
    case Needs::samples:
      if (run.samples.empty()) return rows.add_move(std::move(run.last));
      return rows.add_points(posterior_delta(std::span<const V>(run.samples), start, settings.rho));
    case Needs::last_iterate:
      return rows.add_move(std::move(run.last));
  }
}

}  // namespace fedep
