// The chain of a linear model on sparse features. A step costs what its batch touches: rows of W
// whose word does not occur have gradient zero and follow a recursion known in advance,
//
//   m ← μ m + (λ θ - η)/N_k,   θ ← θ - lr m,
//
// so they wait. A row that is touched, or asked for, is brought up to date in one go: by a 2x2 map
// that depends on the number of steps alone where λ is one number (step_maps.h), by so many steps
// in registers where it is not. Rows that are never touched are not even kept (untouched_rows.h).
// The same iterates, averages and moments as make_dense_chain() to rounding.
//
// Epochs are planned when they are asked for (step_plan.h) and made when an outcome is, several at
// a time if nobody looked in between: then rows pass through the cache once, in stripes of columns
// (row_steps.h). So what a visit gives depends in its last bits on what was asked after which
// epoch, which is the same in every run of a recipe.
#pragma once

#include <memory>

#include "fedep/model/linear.h"
#include "fedep/sim/chain/chain.h"

namespace fedep {

// Not for Langevin noise, which moves every coordinate in every step.
std::unique_ptr<Chain> make_sparse_chain(SparseLinear& model, const ChainInput& input);

}  // namespace fedep
