// A second stream, for copies that go on while device_stream() computes.
//
//   SideStream side;
//   side.follow_main();                        // after everything given to device_stream() so far
//   side.copy(device, pinned, bytes);          // returns at once
//   side.main_follows();                       // device_stream() goes on after that copy
//
// Memory of the pool (device_allocate) is handed out in device_stream()'s order: call follow_main()
// before such memory is touched here, and main_follows() before it is freed.
#pragma once

#include <cstddef>

#include "fedep/cuda/device/device.h"

struct CUevent_st;

namespace fedep {

class SideStream {
 public:
  SideStream();
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

  void follow_main();
  void follow(SideStream& other);
  void main_follows();
  // Between any two of: GPU memory, page-locked memory.
  void copy(void* to, const void* from, std::size_t bytes);
  void wait();                                   // until all copies are done
  CudaStream stream() const { return stream_; }  // for kernels that run beside

 private:
  CudaStream stream_ = nullptr;
  CUevent_st* event_ = nullptr;
};

}  // namespace fedep
