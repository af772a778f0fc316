// What every launch of a kernel and call of CUDA's runtime shares. Without its headers; C++17, for
// .cu files too.
#pragma once

namespace fedep::gpu {

// Throws RunError with the call's name if `error`, a cudaError_t, is one.
void check_call(int error, const char* call);
// Throws RunError with the kernel's name if its launch failed.
void check_launch(const char* kernel);
// Lets a kernel use more than 48 KB of dynamic shared memory; asked once per kernel.
void allow_shared_memory(const void* kernel, int bytes);

}  // namespace fedep::gpu
