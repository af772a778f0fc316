#include "fedep/cuda/round/chain_kernels.h"

#include <algorithm>

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/random.cuh"
#include "fedep/cuda/round/chain_rows.cuh"

namespace fedep::gpu {
namespace {

struct Prior {
  float eta, lambda;
};

__device__ Prior prior_of(const ChainRows& rows, int c, std::size_t i) {
  return {rows.eta != nullptr ? rows.eta[i] : 0.0f,
          rows.diagonal ? rows.lambda[i] : rows.lambda[c]};
}

__device__ float rate_of(const ChainRows& rows, int c) {
  return rows.rate != nullptr ? rows.rate[c] : rows.lr;
}

// Of a step of an epoch, counted from the first that coast() makes.
__device__ float rate_of(const ChainRows& rows, const RateTable& table, int c, int epoch,
                         int step) {
  if (table.rates == nullptr) return rows.lr;
  const int at = (table.first_epoch + epoch) * table.epoch_length + step;
  return table.rates[std::size_t(at) * table.clients + c];
}

// m ← μ m + (λ θ - η)/N, θ ← θ - lr m
__device__ void coast_step(const ChainRows& rows, const Prior& prior, float rate, float per_example,
                           float& m, float& theta) {
  m *= rows.mu;
  m += (prior.lambda * theta - prior.eta) * per_example;
  theta -= rate * m;
}

// Some steps of a coordinate with pull p and push q, on (θ, m): they are linear in both and in q.
struct StepsMap {
  float theta_by_theta = 1, theta_by_m = 0, theta_by_push = 0;
  float m_by_theta = 0, m_by_m = 1, m_by_push = 0;

  __device__ void add_step(float mu, float lr, float pull) {
    m_by_theta = __fmaf_rn(mu, m_by_theta, pull * theta_by_theta);
    m_by_m = __fmaf_rn(mu, m_by_m, pull * theta_by_m);
    m_by_push = __fmaf_rn(mu, m_by_push, __fmaf_rn(pull, theta_by_push, 1.0f));
    theta_by_theta = __fmaf_rn(-lr, m_by_theta, theta_by_theta);
    theta_by_m = __fmaf_rn(-lr, m_by_m, theta_by_m);
    theta_by_push = __fmaf_rn(-lr, m_by_push, theta_by_push);
  }
};

__global__ void __launch_bounds__(kThreads) start_kernel(ChainRows rows, ChainStart start) {
  const int c = blockIdx.x;
  const std::size_t row = c * rows.stride;
  const float* const eta = start.eta != nullptr ? start.eta[c] : nullptr;
  const float* const lambda = start.lambda != nullptr ? start.lambda[c] : nullptr;
  const float added = lambda != nullptr ? start.added[c] : 0.0f;
  const auto four = [](const float* from, std::size_t i) {
    return reinterpret_cast<const float4*>(from)[i];
  };
  const auto put = [row](float* to, std::size_t i, float4 value) {
    reinterpret_cast<float4*>(to + row)[i] = value;
  };
  const std::size_t stride = gridDim.y * kThreads, own = blockIdx.y * kThreads + threadIdx.x;
#pragma unroll 2
  for (std::size_t i = own; i < start.size / 4; i += stride) {
    put(rows.theta, i, four(start.theta, i));
    put(rows.momentum, i, make_float4(0, 0, 0, 0));
    if (eta != nullptr) put(start.eta_rows, i, four(eta, i));
    if (lambda != nullptr) {
      const float4 v = four(lambda, i);
      put(start.lambda_rows, i, make_float4(v.x + added, v.y + added, v.z + added, v.w + added));
    }
  }
  for (std::size_t i = start.size / 4 * 4 + own; i < start.size; i += stride) {
    rows.theta[row + i] = start.theta[i];
    rows.momentum[row + i] = 0.0f;
    if (eta != nullptr) start.eta_rows[row + i] = eta[i];
    if (lambda != nullptr) start.lambda_rows[row + i] = lambda[i] + added;
  }
}

constexpr int kMostWeights = 64;  // of epochs' samples that are worked out once a block

// `kSums`: an epoch's sample is the average of its iterates, not the last; else an epoch is one
// linear map.
template <bool kSums>
__global__ void __launch_bounds__(kThreads)
    coast_kernel(ChainRows rows, Chunks chunks, int epochs, const std::int32_t* steps,
                 int first_sample, RateTable table) {
  const int c = blockIdx.y;
  const Chunk chunk = chunks.chunks[blockIdx.x];
  const int n = steps[c];
  const float per_example = rows.per_example[c];
  __shared__ float weights[kMostWeights];
  if (first_sample > 0) {
    for (int e = int(threadIdx.x); e < epochs && e < kMostWeights; e += kThreads) {
      weights[e] = 1.0f / float(first_sample + e);
    }
    __syncthreads();
  }
  for_each_group_of(chunk, rows, [&](const Group& group) {
    Prior priors[kAtOnce];
    float thetas[kAtOnce], momenta[kAtOnce];
    Samples samples[kAtOnce];
    group.each([&](int j, std::size_t i) {
      priors[j] = prior_of(rows, c, i);
      thetas[j] = rows.theta[i];
      momenta[j] = rows.momentum[i];
      samples[j] = samples_before(rows, i, first_sample);
    });
    group.each([&](int j, std::size_t i) {
      const float pull = priors[j].lambda * per_example, push = -priors[j].eta * per_example;
      float theta = thetas[j], m = momenta[j], sum = 0;
      StepsMap map;
      const bool one_map = !kSums && table.rates == nullptr;
      if (one_map) {
#pragma unroll 5
        for (int step = 0; step < n; ++step) map.add_step(rows.mu, rows.lr, pull);
      }
      const float theta_push = map.theta_by_push * push, m_push = map.m_by_push * push;
      for (int epoch = 0; epoch < epochs; ++epoch) {
        if (!one_map) {
          sum = 0;
#pragma unroll 5
          for (int step = 0; step < n; ++step) {
            m = __fmaf_rn(rows.mu, m, __fmaf_rn(pull, theta, push));
            theta = __fmaf_rn(-rate_of(rows, table, c, epoch, step), m, theta);
            sum += theta;
          }
        } else {
          const float before = theta;
          theta = __fmaf_rn(map.theta_by_theta, theta, __fmaf_rn(map.theta_by_m, m, theta_push));
          m = __fmaf_rn(map.m_by_theta, before, __fmaf_rn(map.m_by_m, m, m_push));
        }
        if (first_sample == 0) continue;
        const float weight =
            epoch < kMostWeights ? weights[epoch] : 1.0f / float(first_sample + epoch);
        samples[j].add(weight, kSums && n > 0 ? sum / float(n) : theta);
      }
      rows.theta[i] = theta;
      rows.momentum[i] = m;
      if (kSums) rows.sum[i] = sum;
      if (first_sample > 0) samples[j].write(rows, i);
    });
  });
}

// Where all of a client's coordinates have one precision and nobody asks for variances, they all
// follow one linear map of (θ, m, η): its coefficients come from playing the steps on unit vectors.
__global__ void __launch_bounds__(kThreads)
    coast_alike_kernel(ChainRows rows, Chunks chunks, int epochs, const std::int32_t* steps,
                       int first_sample, RateTable table) {
  __shared__ float to_theta[3], to_momentum[3], to_mean[3];
  const int c = blockIdx.y;
  const Chunk chunk = chunks.chunks[blockIdx.x];
  const int samples = first_sample - 1 + epochs;  // after these, where there are any
  if (threadIdx.x < 3) {
    const int n = steps[c];
    const double lambda = rows.lambda[c], per_example = rows.per_example[c];
    double theta = threadIdx.x == 0, m = threadIdx.x == 1, total = 0;
    const double eta = threadIdx.x == 2;
    for (int epoch = 0; epoch < epochs; ++epoch) {
      for (int step = 0; step < n; ++step) {
        m = double(rows.mu) * m + (lambda * theta - eta) * per_example;
        theta -= double(rate_of(rows, table, c, epoch, step)) * m;
      }
      total += theta;
    }
    to_theta[threadIdx.x] = float(theta);
    to_momentum[threadIdx.x] = float(m);
    to_mean[threadIdx.x] = float(total / samples);
  }
  __syncthreads();
  const float kept = float(first_sample - 1) / float(samples);
  for_each_group_of(chunk, rows, [&](const Group& group) {
    float theta[kAtOnce], m[kAtOnce], eta[kAtOnce], mean[kAtOnce];
    group.each([&](int j, std::size_t i) {
      theta[j] = rows.theta[i];
      m[j] = rows.momentum[i];
      eta[j] = rows.eta != nullptr ? rows.eta[i] : 0.0f;
      if (first_sample > 1) mean[j] = rows.mean[i];
    });
    group.each([&](int j, std::size_t i) {
      const auto image = [&](const float(&by)[3]) {
        return by[0] * theta[j] + by[1] * m[j] + by[2] * eta[j];
      };
      rows.theta[i] = image(to_theta);
      rows.momentum[i] = image(to_momentum);
      if (first_sample > 0) {
        rows.mean[i] = image(to_mean) + (first_sample > 1 ? kept * mean[j] : 0.0f);
      }
    });
  });
}

__global__ void __launch_bounds__(kThreads)
    step_without_data_kernel(ChainRows rows, Chunks chunks, const std::int32_t* count) {
  const int c = blockIdx.y;
  if (count[c] == 0) return;
  const Chunk chunk = chunks.chunks[blockIdx.x];
  for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
    const std::size_t i = c * rows.stride + chunk.begin + j;
    coast_step(rows, prior_of(rows, c, i), rate_of(rows, c), rows.per_example[c], rows.momentum[i],
               rows.theta[i]);
  }
}

// A thread has four coordinates, as a block of the stream does.
__global__ void __launch_bounds__(kThreads)
    add_langevin_kernel(ChainRows rows, std::size_t size, const std::int32_t* count,
                        const StreamAddress* keys, const StreamAddress* at, const float* sigma) {
  const int c = blockIdx.y;
  if (count[c] == 0) return;
  StreamAddress address = keys[c];
  address.step = at[c].step;
  const float rate = rate_of(rows, c);
  const float scale = rows.rate != nullptr ? sigma[c] * sqrtf(rows.lr / rate) : sigma[c];
  for (std::size_t quad = blockIdx.x * kThreads + threadIdx.x; 4 * quad < size;
       quad += gridDim.x * kThreads) {
    const float4 normals = four_normals(philox_block(address, quad));
    const float values[4] = {normals.x, normals.y, normals.z, normals.w};
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (4 * quad + j >= size) break;
      const std::size_t i = c * rows.stride + 4 * quad + j;
      const float noise = scale * values[j];
      rows.momentum[i] += noise;
      rows.theta[i] -= rate * noise;
    }
  }
}

__global__ void __launch_bounds__(kThreads)
    add_to_sum_kernel(ChainRows rows, Chunks chunks, const std::int32_t* count) {
  const int c = blockIdx.y;
  if (count[c] == 0) return;
  const Chunk chunk = chunks.chunks[blockIdx.x];
  for (std::uint32_t j = threadIdx.x; j < chunk.size; j += kThreads) {
    const std::size_t i = c * rows.stride + chunk.begin + j;
    rows.sum[i] += rows.theta[i];
  }
}

__global__ void take_rates_kernel(const float* rates, int clients, const std::int32_t* step,
                                  float* rate) {
  for (int c = threadIdx.x; c < clients; c += blockDim.x) {
    rate[c] = rates[std::size_t(*step) * clients + c];
  }
}

dim3 grid_of(std::size_t elements, int clients) {
  const std::size_t blocks = (elements + kChunk - 1) / kChunk;
  return dim3(unsigned(blocks < 1 ? 1 : blocks), unsigned(clients));
}

}  // namespace

void start_chains(const ChainRows& rows, const ChainStart& start, Stream stream) {
  // Clients side by side: where they start is read once.
  const unsigned blocks = unsigned(std::clamp<std::size_t>(start.size / kChunk, 1, 65535));
  start_kernel<<<dim3(unsigned(rows.clients), blocks), kThreads, 0, stream>>>(rows, start);
  check_launch("start_chains");
}

void take_rates(const float* rates, int clients, const std::int32_t* step, float* rate,
                Stream stream) {
  take_rates_kernel<<<1, kThreads, 0, stream>>>(rates, clients, step, rate);
  check_launch("take_rates");
}

void coast(const ChainRows& rows, const Chunks& chunks, int epochs, const std::int32_t* steps,
           int first_sample, Stream stream, const RateTable& rates) {
  if (chunks.count == 0) return;
  const bool variances = first_sample > 0 && rows.squares != nullptr;
  const auto kernel = rows.sum != nullptr            ? coast_kernel<true>
                      : !rows.diagonal && !variances ? coast_alike_kernel
                                                     : coast_kernel<false>;
  kernel<<<grid_of(chunks, rows), kThreads, 0, stream>>>(rows, chunks, epochs, steps, first_sample,
                                                         rates);
  check_launch("coast");
}

void step_without_data(const ChainRows& rows, const Chunks& chunks, const std::int32_t* count,
                       Stream stream) {
  if (chunks.count == 0) return;
  step_without_data_kernel<<<grid_of(chunks, rows), kThreads, 0, stream>>>(rows, chunks, count);
  check_launch("step_without_data");
}

void add_langevin(const ChainRows& rows, std::size_t size, const std::int32_t* count,
                  const StreamAddress* keys, const StreamAddress* at, const float* sigma,
                  Stream stream) {
  add_langevin_kernel<<<grid_of(size / 4 + 1, rows.clients), kThreads, 0, stream>>>(
      rows, size, count, keys, at, sigma);
  check_launch("add_langevin");
}

void add_to_sum(const ChainRows& rows, const Chunks& chunks, const std::int32_t* count,
                Stream stream) {
  if (chunks.count == 0) return;
  add_to_sum_kernel<<<grid_of(chunks, rows), kThreads, 0, stream>>>(rows, chunks, count);
  check_launch("add_to_sum");
}

}  // namespace fedep::gpu
