// Weights of which a client's examples say nothing: rows of W whose words it does not use. There the
// tilted distribution is the cavity, and a visit finds it but for rounding (λ times η/λ is not η). What
// is known to be nothing need not be sent, and then a client's factor has numbers in its own rows alone.
//
//   run.silent = silent_weights(*sparse_model, data, client);
//   if (!keeps_precisions(run.tilted, visit.cavity, run.silent)) run.silent.clear();
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/message/gaussian.h"
#include "fedep/message/layout.h"
#include "fedep/model/linear.h"
#include "fedep/round/phase.h"

namespace fedep {

// Ascending and disjoint.
std::vector<Range> silent_weights(const SparseLinear& model, const Dataset& data,
                                  std::size_t client);

// Whether visits of a stateful phase, of a sparse model, cannot move weights that are silent, whatever the
// data are. Then a visit can be played on a client's own weights (round/host_rows.h).
bool moves_own_weights_alone(const Recipe& recipe, const Phase& phase);

// Whether the tilted distribution has the cavity's precisions there, to the last bit. A method may know
// better than data that say nothing: scaled identity does, and NGVI with an initial_scale.
bool keeps_precisions(const Message& tilted, const Message& cavity, std::span<const Range> silent);

}  // namespace fedep
