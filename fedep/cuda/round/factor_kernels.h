// The sum of clients' factors, one after the other.
//
// Plain C++17: nvcc reads this. Pointers are to GPU memory; functions enqueue on `stream` and
// return.
#pragma once

#include <cstddef>

#include "fedep/optim/clocked_step.h"

struct CUstream_st;

namespace fedep::gpu {

// One array (eta or lambda) of one factor, n elements: sum[i] += times × part[i], rounded to a float.
// On the server's clock the part is first brought up to date by its momentum.
struct FactorPart {
  const float* part = nullptr;
  const float* momentum = nullptr;  // null: the part is as it is
  MissedSteps missed = {};
  float times = 1;
};
void add_factor(const FactorPart& factor, std::size_t n, double* sum, CUstream_st* stream);

}  // namespace fedep::gpu
