// Squared gradients of a linear model on sparse features at the price of what its batches touch: all
// rows of W whose word does not occur have none, so Laplace adds up the others only, and NGVI draws
// only weights that a batch reads. Its ν shrinks by β in every step where a row is left alone, which a
// row makes up for when it is next touched.
#pragma once

#include "fedep/config/recipe.h"
#include "fedep/model/linear.h"
#include "fedep/sim/chain/chain.h"

namespace fedep {

// Σ over the pass's batches of the batch's mean squared gradient at theta (inference/laplace.h).
HostVector<float> sum_sparse_squares(SparseLinear& model, const ChainInput& input,
                                     const Minibatches& pass, const HostVector<float>& theta);

// NGVI's ν after all batches of the pass (inference/ngvi.h), to rounding.
HostVector<float> sparse_running_squares(SparseLinear& model, const ChainInput& input,
                                         const Minibatches& pass, const HostVector<float>& mean,
                                         const InferenceSettings& settings);

}  // namespace fedep
