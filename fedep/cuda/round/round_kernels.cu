#include "fedep/cuda/round/round_kernels.h"

#include <cuda_runtime.h>

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/reduce.cuh"

namespace fedep::gpu {
namespace {

constexpr unsigned kThreads = 256;

__device__ std::size_t first_index() { return std::size_t(blockIdx.x) * blockDim.x + threadIdx.x; }
__device__ std::size_t index_stride() { return std::size_t(gridDim.x) * blockDim.x; }
__device__ float infinity() { return __int_as_float(0x7f800000); }
__device__ bool improper(float lambda) { return !(lambda > 0) || !isfinite(lambda); }

// a and b, whose difference is taken later: it waits for both.
__device__ float2 terms_at(const DeltaRow& row, std::size_t i) {
  return {row.a != nullptr ? row.a[i] : row.a_number, row.b != nullptr ? row.b[i] : row.b_number};
}
__device__ float delta_of(float2 terms) { return terms.x - terms.y; }

__device__ long long units_of(float2 terms, double scale) {
  return __double2ll_rn(double(delta_of(terms)) * scale);
}

struct Measure {
  using Value = DeltaFacts;
  const DeltaRow* rows;
  __device__ DeltaFacts zero() const { return {0.0, 0.0f, 0}; }
  __device__ float2 load(int row, std::size_t i) const { return terms_at(rows[row], i); }
  __device__ void take(DeltaFacts& v, float2 terms) const {
    const float x = delta_of(terms);
    v.squares += double(x) * double(x);
    v.largest = fmaxf(v.largest, fabsf(x));
    v.has_nan |= isnan(x) ? 1 : 0;
  }
  __device__ void merge(DeltaFacts& v, const DeltaFacts& w) const {
    v.squares += w.squares;
    v.largest = fmaxf(v.largest, w.largest);
    v.has_nan |= w.has_nan;
  }
};

struct Examine {
  using Value = ArrayFacts;
  const float* x;
  __device__ ArrayFacts zero() const { return {infinity(), 0.0f, 1, 0}; }
  __device__ float load(int, std::size_t i) const { return x[i]; }
  __device__ void take(ArrayFacts& v, float value) const {
    v.least = fminf(v.least, value);
    v.largest = fmaxf(v.largest, fabsf(value));
    v.finite &= isfinite(value) ? 1 : 0;
    v.has_nan |= isnan(value) ? 1 : 0;
  }
  __device__ void merge(ArrayFacts& v, const ArrayFacts& w) const {
    v.least = fminf(v.least, w.least);
    v.largest = fmaxf(v.largest, w.largest);
    v.finite &= w.finite;
    v.has_nan |= w.has_nan;
  }
};

// Not inlined: the compiler would have the other elements of a group wait for this rare read.
__device__ __noinline__ bool zero_before(const ImproperRow& row, std::size_t i) {
  return (row.before != nullptr ? row.before[i] : row.before_number) == 0;
}

struct Improper {
  using Value = unsigned long long;
  struct Loaded {
    float now;
    int row;
    std::size_t i;
  };
  const ImproperRow* rows;
  __device__ Value zero() const { return 0; }
  __device__ Loaded load(int row, std::size_t i) const { return {rows[row].after[i], row, i}; }
  __device__ void take(Value& v, const Loaded& x) const {
    if (!improper(x.now)) return;
    v += x.now == 0 && zero_before(rows[x.row], x.i) ? 0 : 1;
  }
  __device__ void merge(Value& v, Value w) const { v += w; }
};

struct Different {
  using Value = unsigned long long;
  const float* a;
  const float* b;
  __device__ Value zero() const { return 0; }
  __device__ float2 load(int, std::size_t i) const { return {a[i], b[i]}; }
  __device__ void take(Value& v, float2 pair) const { v += pair.x == pair.y ? 0 : 1; }
  __device__ void merge(Value& v, Value w) const { v += w; }
};

struct Hash {
  using Value = unsigned long long;
  struct Loaded {
    float value;
    std::size_t i;
  };
  const float* x;
  __device__ Value zero() const { return 0; }
  __device__ Loaded load(int, std::size_t i) const { return {x[i], i}; }
  __device__ void take(Value& v, const Loaded& loaded) const {
    // splitmix64 of the place and the bits
    Value z = (Value(loaded.i + 1) << 32) ^ Value(__float_as_uint(loaded.value));
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    v += z ^ (z >> 31);
  }
  __device__ void merge(Value& v, Value w) const { v += w; }
};

__global__ void remove_kernel(const RemovalRow* rows, std::size_t n) {
  const RemovalRow row = rows[blockIdx.x];
  for_each_group_of_row(n, [&](const Group& group) {
    float whole[kAtOnce], part[kAtOnce];
    group.each([&](int j, std::size_t i) {
      whole[j] = row.whole[i];
      part[j] = row.part[i];
    });
    if (row.momentum != nullptr) {
      group.each(
          [&](int j, std::size_t i) { part[j] = caught_up(row.missed, part[j], row.momentum[i]); });
    }
    group.each([&](int j, std::size_t i) { row.left[i] = whole[j] - row.share * part[j]; });
  });
}

// terms_at() of a group, with one branch for all of it.
__device__ void load_terms(const DeltaRow& row, const Group& group, float2 (&terms)[kAtOnce]) {
#pragma unroll
  for (float2& own : terms) own = {row.a_number, row.b_number};
  if (row.a != nullptr) group.each([&](int j, std::size_t i) { terms[j].x = row.a[i]; });
  if (row.b != nullptr) group.each([&](int j, std::size_t i) { terms[j].y = row.b[i]; });
}

// What becomes of a sum of units.
struct AsNumbers {
  double unit;
  float* total;
  __device__ void operator()(std::size_t i, long long sum) const {
    total[i] = float(double(sum) * unit);
  }
};
template <class T>
struct AsUnits {
  T* units;
  __device__ void operator()(std::size_t i, long long sum) const { units[i] = T(sum); }
};

template <class Keep>
__global__ void sum_kernel(const DeltaRow* rows, std::size_t count, std::size_t n, Keep keep) {
  for_each_group(first_index(), index_stride(), n, [&](const Group& group) {
    long long sum[kAtOnce] = {};
    for (std::size_t k = 0; k < count; k += 2) {  // after the last comes a row of zeros
      const DeltaRow row = rows[k], next = k + 1 < count ? rows[k + 1] : DeltaRow{};
      float2 terms[kAtOnce], next_terms[kAtOnce];
      load_terms(row, group, terms);
      load_terms(next, group, next_terms);
      group.each([&](int j, std::size_t) {
        sum[j] += units_of(terms[j], row.scale) + units_of(next_terms[j], next.scale);
      });
    }
    group.each([&](int j, std::size_t i) { keep(i, sum[j]); });
  });
}

template <class T>
__global__ void numbers_kernel(const T* units, std::size_t n, AsNumbers numbers) {
  for_each_group(first_index(), index_stride(), n, [&](const Group& group) {
    T loaded[kAtOnce];
    group.each([&](int j, std::size_t i) { loaded[j] = units[i]; });
    group.each([&](int j, std::size_t i) { numbers(i, loaded[j]); });
  });
}

// x and its slots follow g(load(i)), for a group of elements.
template <class Load, class G>
__device__ void step_group(const OptimizerStep& step, float settle, const Group& group, float* x,
                           float* slot0, float* slot1, const Load& load, const G& g) {
  decltype(load(0)) loaded[kAtOnce];
  float before[kAtOnce], own0[kAtOnce] = {}, own1[kAtOnce] = {};
  group.each([&](int j, std::size_t i) {
    loaded[j] = load(i);
    before[j] = x[i];
    if (slot0 != nullptr) own0[j] = slot0[i];
    if (slot1 != nullptr) own1[j] = slot1[i];
  });
  group.each([&](int j, std::size_t i) {
    const float after = stepped(step, before[j], g(loaded[j]), own0[j], own1[j]);
    x[i] = settle == 1.0f ? after : before[j] + settle * (after - before[j]);
    if (slot0 != nullptr) slot0[i] = own0[j];
    if (slot1 != nullptr) slot1[i] = own1[j];
  });
}

__global__ void apply_kernel(OptimizerStep step, std::size_t n, float* x, const float* g,
                             float* slot0, float* slot1) {
  for_each_group(first_index(), index_stride(), n, [&](const Group& group) {
    step_group(
        step, 1.0f, group, x, slot0, slot1, [&](std::size_t i) { return g[i]; },
        [](float own) { return own; });
  });
}

__global__ void average_kernel(float gain, std::size_t n, const float* x, float* mean,
                               float* variance) {
  for (std::size_t i = first_index(); i < n; i += index_stride()) {
    const float before = mean[i];
    mean[i] = averaged(gain, x[i], before);
    if (variance != nullptr) variance[i] = averaged_variance(gain, x[i], before, variance[i]);
  }
}

__global__ void move_kernel(const FactorRow* rows, std::size_t n) {
  const FactorRow row = rows[blockIdx.x];
  const auto sent = [&](float2 terms) {
    return float(double(units_of(terms, row.delta.scale)) * row.unit);
  };
  for_each_group_of_row(n, [&](const Group& group) {
    if (row.on_clock) {
      group.each([&](int, std::size_t i) {
        row.x[i] =
            clocked(row.missed, row.clocked, row.x[i], sent(terms_at(row.delta, i)), row.slot0[i]);
      });
      return;
    }
    step_group(
        row.step, row.settle, group, row.x, row.slot0, row.slot1,
        [&](std::size_t i) { return terms_at(row.delta, i); }, sent);
  });
}

__global__ void floor_kernel(FloorTask t, std::size_t n) {
  for (std::size_t i = first_index(); i < n; i += index_stride()) {
    const float lambda = t.lambda != nullptr ? t.lambda[i] : t.number;
    if (!improper(lambda) && lambda >= t.floor) continue;
    if (improper(lambda)) {
      const float old = t.before_lambda != nullptr ? t.before_lambda[i] : t.before_number;
      const float mean = improper(old) ? 0.0f : t.before_eta[i] / old;
      t.eta[i] = t.floor * mean;
    } else {
      t.eta[i] = t.eta[i] / lambda * t.floor;
    }
    if (t.lambda != nullptr) t.lambda[i] = t.floor;
  }
}

__global__ void estimate_kernel(const float* eta, const float* lambda, float number,
                                const float* initial, float* out, std::size_t n) {
  for (std::size_t i = first_index(); i < n; i += index_stride()) {
    const float precision = lambda != nullptr ? lambda[i] : number;
    const float center = eta[i] / precision;
    out[i] = precision != 0 && isfinite(center) ? center : initial[i];
  }
}

template <class Keep>
void sum_into(const char* name, const DeltaRow* rows, std::size_t count, std::size_t n,
              const Keep& keep, CUstream_st* stream) {
  if (n == 0) return;
  sum_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(rows, count, n, keep);
  check_launch(name);
}

template <class T>
void scale_into(const T* units, std::size_t n, double unit, float* total, CUstream_st* stream) {
  if (n == 0) return;
  numbers_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(units, n,
                                                                   AsNumbers{unit, total});
  check_launch("numbers_of_units");
}

}  // namespace

void remove_factors(const RemovalRow* rows, std::size_t count, std::size_t n, CUstream_st* stream) {
  if (n == 0 || count == 0) return;
  const dim3 grid(unsigned(count), blocks_for(n, kThreads));  // rows share what is whole
  remove_kernel<<<grid, kThreads, 0, stream>>>(rows, n);
  check_launch("remove_factors");
}

std::size_t measure_scratch(std::size_t rows) { return rows * kReduceBlocks * sizeof(DeltaFacts); }

void measure_deltas(const DeltaRow* rows, std::size_t count, std::size_t n, void* scratch,
                    DeltaFacts* out, CUstream_st* stream) {
  if (count == 0) return;
  reduce("measure_deltas", Measure{rows}, unsigned(count), n, scratch, out, stream);
}

void sum_on_grid(const DeltaRow* rows, std::size_t count, std::size_t n, double unit, float* total,
                 CUstream_st* stream) {
  sum_into("sum_on_grid", rows, count, n, AsNumbers{unit, total}, stream);
}

void sum_units(const DeltaRow* rows, std::size_t count, std::size_t n, std::int64_t* units,
               CUstream_st* stream) {
  sum_into("sum_units", rows, count, n, AsUnits<std::int64_t>{units}, stream);
}

void sum_units(const DeltaRow* rows, std::size_t count, std::size_t n, std::int32_t* units,
               CUstream_st* stream) {
  sum_into("sum_units", rows, count, n, AsUnits<std::int32_t>{units}, stream);
}

void numbers_of_units(const std::int64_t* units, std::size_t n, double unit, float* total,
                      CUstream_st* stream) {
  scale_into(units, n, unit, total, stream);
}

void numbers_of_units(const std::int32_t* units, std::size_t n, double unit, float* total,
                      CUstream_st* stream) {
  scale_into(units, n, unit, total, stream);
}

void apply_step(const OptimizerStep& step, std::size_t n, float* x, const float* g, float* slot0,
                float* slot1, CUstream_st* stream) {
  if (n == 0) return;
  apply_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(step, n, x, g, slot0, slot1);
  check_launch("apply_step");
}

void average_in(float gain, std::size_t n, const float* x, float* mean, float* variance,
                CUstream_st* stream) {
  if (n == 0) return;
  average_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(gain, n, x, mean, variance);
  check_launch("average_in");
}

void move_factors(const FactorRow* rows, std::size_t count, std::size_t n, CUstream_st* stream) {
  if (n == 0 || count == 0) return;
  const dim3 grid(unsigned(count), blocks_for(n, kThreads));  // rows share what deltas refer to
  move_kernel<<<grid, kThreads, 0, stream>>>(rows, n);
  check_launch("move_factors");
}

std::size_t facts_scratch() { return kReduceBlocks * sizeof(ArrayFacts); }

void examine(const float* x, std::size_t n, void* scratch, ArrayFacts* out, CUstream_st* stream) {
  reduce("examine", Examine{x}, 1, n, scratch, out, stream);
}

std::size_t count_scratch(std::size_t rows) {
  return rows * kReduceBlocks * sizeof(unsigned long long);
}

void count_improper(const ImproperRow* rows, std::size_t count, std::size_t n, void* scratch,
                    unsigned long long* out, CUstream_st* stream) {
  if (count == 0) return;
  reduce("count_improper", Improper{rows}, unsigned(count), n, scratch, out, stream);
}

void count_different(const float* a, const float* b, std::size_t n, void* scratch,
                     unsigned long long* out, CUstream_st* stream) {
  reduce("count_different", Different{a, b}, 1, n, scratch, out, stream);
}

void hash_elements(const float* x, std::size_t n, void* scratch, unsigned long long* out,
                   CUstream_st* stream) {
  reduce("hash_elements", Hash{x}, 1, n, scratch, out, stream);
}

void raise_to_floor(const FloorTask& task, std::size_t n, CUstream_st* stream) {
  if (n == 0) return;
  floor_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(task, n);
  check_launch("raise_to_floor");
}

void estimate_points(const float* eta, const float* lambda, float number, const float* initial,
                     float* out, std::size_t n, CUstream_st* stream) {
  if (n == 0) return;
  estimate_kernel<<<blocks_for(n, kThreads), kThreads, 0, stream>>>(eta, lambda, number, initial,
                                                                    out, n);
  check_launch("estimate_points");
}

}  // namespace fedep::gpu
