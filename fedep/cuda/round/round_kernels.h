// Kernels of a round: cavities, all clients' deltas measured and summed on the fixed-point grid,
// optimizers on natural parameters, the guard. A delta is never written down; it is a difference,
// formed where it is needed. Formulas and roundings are those of algorithm/cavity.h,
// round/grid.cpp, optim/optimizer_step.h and optim/guard.cpp, so element by element the bits are too.
//
// Plain C++17: nvcc reads this. Pointers are to GPU memory; functions enqueue on `stream` and
// return.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fedep/optim/average_element.h"
#include "fedep/optim/clocked_step.h"
#include "fedep/optim/optimizer_step.h"

struct CUstream_st;

namespace fedep::gpu {

// One array of q without one of a factor: left = whole - share × part, all of n elements. Of a factor
// on the server's clock the part is first brought up to date by its momentum.
struct RemovalRow {
  const float* whole = nullptr;
  const float* part = nullptr;
  float share = 1;
  float* left = nullptr;
  const float* momentum = nullptr;  // null: the part is as it is
  MissedSteps missed = {};
};
void remove_factors(const RemovalRow* rows, std::size_t count, std::size_t n, CUstream_st* stream);

// One array (eta or lambda) of one client's delta, a - b; where a pointer is null, the number
// stands for every element. `scale`: what it is multiplied by to be in units of the grid.
struct DeltaRow {
  const float* a = nullptr;
  const float* b = nullptr;
  float a_number = 0;
  float b_number = 0;
  double scale = 0;
};

struct DeltaFacts {
  double squares;  // Σ delta²
  float largest;   // magnitude; NaN are passed over
  int has_nan;
};

// out[row], for rows arrays of n elements. scratch: measure_scratch(rows) bytes.
std::size_t measure_scratch(std::size_t rows);
void measure_deltas(const DeltaRow* rows, std::size_t count, std::size_t n, void* scratch,
                    DeltaFacts* out, CUstream_st* stream);

// total[i] = unit × Σ_rows (delta[i] scale, rounded to the nearest integer, ties to even): exact in
// 64-bit integers. Every row must fit.
void sum_on_grid(const DeltaRow* rows, std::size_t count, std::size_t n, double unit, float* total,
                 CUstream_st* stream);

// The same sum in two parts, between which others' units are added: units[i] = Σ_rows …, and
// total[i] = unit × units[i]. In 32 bits every sum must fit them.
void sum_units(const DeltaRow* rows, std::size_t count, std::size_t n, std::int64_t* units,
               CUstream_st* stream);
void sum_units(const DeltaRow* rows, std::size_t count, std::size_t n, std::int32_t* units,
               CUstream_st* stream);
void numbers_of_units(const std::int64_t* units, std::size_t n, double unit, float* total,
                      CUstream_st* stream);
void numbers_of_units(const std::int32_t* units, std::size_t n, double unit, float* total,
                      CUstream_st* stream);

// x and its slots follow g.
void apply_step(const OptimizerStep& step, std::size_t n, float* x, const float* g, float* slot0,
                float* slot1, CUstream_st* stream);

// mean and, where it is not null, variance follow x (optim/average_element.h).
void average_in(float gain, std::size_t n, const float* x, float* mean, float* variance,
                CUstream_st* stream);

// A client's own factor follows what was sent of its delta: g = unit × rounded(delta scale). With
// `settle` other than 1 it keeps only that much of its step (and its slots all of theirs). On the
// server's clock it makes `clocked` of it, after what it has missed.
struct FactorRow {
  DeltaRow delta;
  double unit = 0;
  OptimizerStep step;
  float settle = 1;
  float* x = nullptr;
  float* slot0 = nullptr;
  float* slot1 = nullptr;
  bool on_clock = false;
  MissedSteps missed = {};
  ClockedStep clocked = {};
};
void move_factors(const FactorRow* rows, std::size_t count, std::size_t n, CUstream_st* stream);

// What a round must know of an array.
struct ArrayFacts {
  float least;    // +infinity if there is none
  float largest;  // magnitude; NaN are passed over
  int finite;     // all are
  int has_nan;
};
std::size_t facts_scratch();
void examine(const float* x, std::size_t n, void* scratch, ArrayFacts* out, CUstream_st* stream);

// Precisions of `after` that are not positive and finite, except zeros that were zero before too.
// before null: before_number.
struct ImproperRow {
  const float* before = nullptr;
  const float* after = nullptr;
  float before_number = 0;
};
std::size_t count_scratch(std::size_t rows);
void count_improper(const ImproperRow* rows, std::size_t count, std::size_t n, void* scratch,
                    unsigned long long* out, CUstream_st* stream);

// Elements in which a and b differ; NaN differs from everything.
void count_different(const float* a, const float* b, std::size_t n, void* scratch,
                     unsigned long long* out, CUstream_st* stream);

// Of every element's bits and place, whatever the order in which they are added up. scratch:
// count_scratch(1) bytes.
void hash_elements(const float* x, std::size_t n, void* scratch, unsigned long long* out,
                   CUstream_st* stream);

// Precisions below the floor are raised to it (optim/guard.cpp); null lambdas: the numbers.
struct FloorTask {
  const float* before_eta = nullptr;
  const float* before_lambda = nullptr;
  float before_number = 0;
  float* eta = nullptr;
  float* lambda = nullptr;
  float number = 0;
  float floor = 0;
};
void raise_to_floor(const FloorTask& task, std::size_t n, CUstream_st* stream);

// eta / lambda where that is finite and lambda not zero, else initial. lambda null: the number.
void estimate_points(const float* eta, const float* lambda, float number, const float* initial,
                     float* out, std::size_t n, CUstream_st* stream);

}  // namespace fedep::gpu
