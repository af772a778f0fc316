// Kernels that follow one another on a stream without a gap: the next one's blocks are set up while
// the last ones of this one finish.
//
//   launch_early(kernel, grid, threads, shared_bytes, stream, arguments…);
//
//   wait_for_previous();   // first thing in such a kernel: nothing before it may touch global memory
//   …
//   allow_next();          // where the next kernel may be set up; it still waits for all of this one
#pragma once

#include <cuda_runtime.h>

namespace fedep::gpu {

__device__ inline void wait_for_previous() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ inline void allow_next() {
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

template <class... Parameters, class... Arguments>
void launch_early(void (*kernel)(Parameters...), dim3 grid, unsigned threads, std::size_t bytes,
                  cudaStream_t stream, Arguments... arguments) {
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = bytes;
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...);
}

}  // namespace fedep::gpu
