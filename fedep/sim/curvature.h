// A last round of curvature (phase.curvature = "full"): the whole Hessian of a table's posterior at the mean
// that rounds with a precision for each weight have come to. It says how weights go together, which those
// precisions do not.
//
//   check_curvature(recipe, task);
//   const std::optional<Curvature> curvature = play_curvature(recipe, task, state);
//   const DenseGaussian<double> q = posterior_of(*curvature, state.prior);
#pragma once

#include <functional>
#include <optional>

#include "fedep/config/recipe.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/round/diagnosis/curvature.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/task.h"

namespace fedep {

// Whether the recipe's last phase ends with one.
bool has_curvature(const Recipe& recipe);

// Throws InputError for a recipe, its families decided, that asks for what cannot be had, naming what stands
// in the way.
void check_curvature(const Recipe& recipe, const Task& task);

// Every client is asked, on a core, wherever rounds were played. Nothing if `stop` says so meanwhile.
std::optional<Curvature> play_curvature(const Recipe& recipe, const Task& task,
                                        const ServerState& state,
                                        const std::function<bool()>& stop = {});

// The prior times the Gaussian around the curvature's mean: Λ = Λ_0 + Σ_k H_k, η = Λ mean. It need not be
// proper.
DenseGaussian<double> posterior_of(const Curvature& curvature, const Message& prior);

// How far its mean is from the mode, by one Newton step: the largest of all weights' distances, in their own
// deviations. `q` is posterior_of(curvature, prior) and proper.
double distance_to_mode(const Curvature& curvature, const Message& prior,
                        const DenseGaussian<double>& q);

}  // namespace fedep
