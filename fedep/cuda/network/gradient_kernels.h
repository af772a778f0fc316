// What becomes of a gradient that torch's autograd has made, one tensor of one client at a time,
// and the seeds of torch's generator. Plain C++17: nvcc reads this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fedep/cuda/device/stream_address.h"
#include "fedep/cuda/network/convolution_kernels.h"

namespace fedep::gpu {

// The update of `size` weights of client `client` from their gradient; null: zero. The client rests
// if *count is 0.
void update_from_gradient(const float* gradient, std::size_t size, int client,
                          const std::int32_t* count, const Update& u, Stream stream);

// sum += g² / *count, where `example` is below *count. A null gradient is zero and adds nothing.
void add_squared_gradient(const float* gradient, std::size_t size, int example,
                          const std::int32_t* count, float* sum, Stream stream);

// *one = 1 if `example` is below *count, else 0: the count of a batch of that example alone.
void count_example(int example, const std::int32_t* count, std::int32_t* one, Stream stream);

// Seed and offset of torch's generator: the first 64 bits of the stream `steps` steps after *at,
// and zero.
void seed_generator(const StreamAddress* at, std::uint32_t steps, std::int64_t* seed,
                    std::int64_t* offset, Stream stream);

}  // namespace fedep::gpu
