#include "fedep/cuda/device/batch_kernels.h"

#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/device/random.cuh"

namespace fedep::gpu {
namespace {

constexpr int kThreads = 256;
constexpr int kPanel = 16;

__global__ void begin_step_kernel(StepTables t) {
  const std::int32_t step = *t.next;
  for (int c = threadIdx.x; c < t.clients; c += blockDim.x) {
    const std::size_t i = std::size_t(step) * t.clients + c;
    t.count[c] = t.counts[i];
    t.augment[c].step = t.own_steps[i];
    t.dropout[c].step = t.own_steps[i];
  }
  __syncthreads();  // everybody has read `next`
  if (threadIdx.x == 0) {
    *t.step = step;
    *t.next = step + 1;
  }
}

__device__ unsigned scaled(std::uint32_t word, unsigned bound) { return __umulhi(word, bound); }

// The sum over a block, in every thread.
__device__ std::uint64_t block_sum(unsigned long long value) {
  __shared__ unsigned long long parts[kThreads / 32];
  __syncthreads();
  for (int lane = 16; lane > 0; lane /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane);
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  std::uint64_t total = 0;
  for (int i = 0; i < kThreads / 32; ++i) total += parts[i];
  return total;
}

// One block makes one image.
__global__ void __launch_bounds__(kThreads)
    image_batch_kernel(StepTables t, ImageStore store, const std::uint32_t* first, float* features,
                       std::int32_t* labels) {
  extern __shared__ float crop_values[];  // only where they are projected
  const int c = blockIdx.y, row = blockIdx.x;
  if (row >= t.count[c]) return;
  const std::size_t place = std::size_t(c) * t.rows + row;
  const std::uint32_t example = t.examples[std::size_t(*t.step) * t.clients * t.rows + place];
  const std::uint32_t image = store.images[first[c] + example];
  const std::uint8_t* const pixels = store.pixels + std::size_t(image) * store.image_size;
  if (threadIdx.x == 0) labels[place] = store.labels[image];

  if (store.crop_side == 0) {
    float* const out = features + place * store.image_size;
    for (int i = threadIdx.x; i < store.image_size; i += kThreads) {
      out[i] = __fdiv_rn(float(pixels[i]), 255.0f);
    }
    return;
  }

  const unsigned margin = store.side - store.crop_side;
  unsigned top = margin / 2, left = margin / 2;
  bool flip = false;
  if (store.random_crops) {
    const Words words = philox_block(
        t.augment[c], store.numbers != nullptr ? store.numbers[first[c] + example] : example);
    top = scaled(words.a, margin + 1);
    left = scaled(words.b, margin + 1);
    flip = (words.c >> 31) != 0;
  }
  const int width = store.crop_side * store.channels, size = store.crop_side * width;
  const std::uint8_t* const corner = pixels + (top * store.side + left) * store.channels;
  const int stride = store.side * store.channels;
  unsigned sum = 0, squares = 0;  // of a thread's share
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const unsigned x = corner[i / width * stride + i % width];
    sum += x;
    squares += x * x;
  }
  const std::uint64_t total = block_sum(sum), total_squares = block_sum(squares);
  const double n = double(size);
  const std::uint64_t spread = std::uint64_t(size) * total_squares - total * total;
  const float mean = float(double(total) / n);
  const float deviation =
      float(fmax(__ddiv_rn(__dsqrt_rn(double(spread)), n), __ddiv_rn(1.0, __dsqrt_rn(n))));

  float* const out = store.panels != nullptr ? crop_values : features + place * size;
  for (int i = threadIdx.x; i < size; i += kThreads) {
    const int y = i / width, x = i % width;
    const int from = flip ? width - store.channels - x + 2 * (x % store.channels) : x;
    out[i] = __fdiv_rn(__fsub_rn(float(corner[y * stride + from]), mean), deviation);
  }
  if (store.panels == nullptr) return;
  __syncthreads();
  // In the order of features and without contraction, as PcaProjection adds.
  for (int j = threadIdx.x; j < store.components; j += kThreads) {
    const float* const panel = store.panels + std::size_t(j / kPanel) * size * kPanel + j % kPanel;
    float projected = 0;
    for (int k = 0; k < size; ++k) {
      projected = __fadd_rn(projected, __fmul_rn(crop_values[k], panel[std::size_t(k) * kPanel]));
    }
    features[place * store.components + j] = __fsub_rn(projected, store.offset[j]);
  }
}

__global__ void row_batch_kernel(StepTables t, RowStore store, const std::uint32_t* first,
                                 float* features, std::int32_t* labels) {
  const int c = blockIdx.y, row = blockIdx.x;
  if (row >= t.count[c]) return;
  const std::size_t place = std::size_t(c) * t.rows + row;
  const std::size_t slot = std::size_t(*t.step) * t.clients * t.rows + place;
  const std::size_t from = first != nullptr ? first[c] + t.examples[slot] : slot;
  if (threadIdx.x == 0) labels[place] = store.labels[from];
  const float* const in = store.rows + from * store.features;
  float* const out = features + place * store.features;
  for (int i = threadIdx.x; i < store.features; i += blockDim.x) out[i] = in[i];
}

}  // namespace

void begin_step(const StepTables& tables, Stream stream) {
  begin_step_kernel<<<1, kThreads, 0, stream>>>(tables);
  check_launch("begin_step");
}

void image_batch(const StepTables& tables, const ImageStore& store, const std::uint32_t* first,
                 float* features, std::int32_t* labels, Stream stream) {
  const std::size_t shared =
      store.panels != nullptr ? sizeof(float) * store.crop_side * store.crop_side * store.channels
                              : 0;
  image_batch_kernel<<<dim3(tables.rows, tables.clients), kThreads, shared, stream>>>(
      tables, store, first, features, labels);
  check_launch("image_batch");
}

void row_batch(const StepTables& tables, const RowStore& store, const std::uint32_t* first,
               float* features, std::int32_t* labels, Stream stream) {
  row_batch_kernel<<<dim3(tables.rows, tables.clients), 128, 0, stream>>>(tables, store, first,
                                                                          features, labels);
  check_launch("row_batch");
}

}  // namespace fedep::gpu
