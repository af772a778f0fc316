// The chain of a linear model on sparse features. A step costs what its batch touches: rows of W
// whose word does not occur have gradient zero and follow a recursion known in advance,
//
//   m ← μ m + (λ θ - η)/N_k,   θ ← θ - lr m,
//
// so they wait. A row that is touched, or asked for, is brought up to date in one go: by a 2x2 map
// that depends on the number of steps alone where λ is one number, by so many steps in registers
// where it is not. The same iterates, averages and moments as make_dense_chain() to rounding.
#pragma once

#include <memory>

#include "fedep/model/linear.h"
#include "fedep/sim/chain.h"

namespace fedep {

// Not for Langevin noise, which moves every coordinate in every step.
std::unique_ptr<Chain> make_sparse_chain(SparseLinear& model, const ChainInput& input);

}  // namespace fedep
