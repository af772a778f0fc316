// What came of a client's local inference. An algorithm says which of these it needs (Needs in
// algorithm.h); an inference method fills just those.
#pragma once

#include <optional>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/message/layout.h"

namespace fedep {

// What became of weights without data where a method has one precision for all weights: their tilted
// η is by_mean × (q's mean) + by_cavity × η_cavity.
struct SilentLaw {
  double by_mean = 0, by_cavity = 0;
};

template <Storage V>
struct ClientRunOf {
  V last;                  // the last iterate theta
  std::vector<V> samples;  // one per epoch: its last iterate, or the average of its iterates
  Gaussian<V> tilted;      // approximation of p_k × cavity
  // Coordinates of which the client's data say nothing: what is there is the cavity's, and differs
  // from it by rounding alone, or is what the law says. Ascending and disjoint.
  std::vector<Range> silent = {};
  std::optional<SilentLaw> silent_law = {};
};

using ClientRun = ClientRunOf<HostVector<float>>;

}  // namespace fedep
