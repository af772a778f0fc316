// What every launch of a kernel shares. C++17, for .cu files.
#pragma once

namespace fedep::gpu {

// Throws RunError with the kernel's name if its launch failed.
void check_launch(const char* kernel);
// Lets a kernel use more than 48 KB of dynamic shared memory; asked once per kernel.
void allow_shared_memory(const void* kernel, int bytes);

}  // namespace fedep::gpu
