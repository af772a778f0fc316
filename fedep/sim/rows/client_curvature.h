// What a client sends in a last round of curvature: gradient and Hessian of -log of its likelihood at some
// weights, weight decay among it.
#pragma once

#include <cstddef>
#include <span>

#include "fedep/data/dataset.h"
#include "fedep/model/likelihood.h"
#include "fedep/round/diagnosis/curvature.h"

namespace fedep {

// Of a linear model on dense features, whose outcome is one that rows can be made of or a class.
CurvaturePart curvature_of(const Dataset& data, std::size_t client, const Likelihood& likelihood,
                           double weight_decay, std::span<const float> theta);

}  // namespace fedep
