// What the GPU can do and what is asked of it, measured: for benchmarks.
//
//   DeviceTimer timer;
//   timer.start();  …  timer.stop();       // marks in device_stream(); nobody waits
//   const double seconds = timer.seconds();  // waits for the second mark
#pragma once

#include <cstddef>

struct CUevent_st;

namespace fedep {

class DeviceTimer {
 public:
  DeviceTimer();
  ~DeviceTimer();
  DeviceTimer(const DeviceTimer&) = delete;
  DeviceTimer& operator=(const DeviceTimer&) = delete;

  void start();
  void stop();             // again: the later one counts
  double seconds() const;  // between start() and stop(); 0 before there was a stop()

 private:
  CUevent_st* start_ = nullptr;
  CUevent_st* stop_ = nullptr;
  bool stopped_ = false;
};

// Bytes per second of a large copy within GPU memory, read and written bytes together.
double measured_copy_rate();
// Floating-point operations per second of tensor cores on TF32 operands at the highest clock, for
// Hopper's cores.
double nominal_tf32_rate();

// Most memory that was in use since the last reset.
std::size_t peak_device_memory();
void reset_peak_device_memory();

}  // namespace fedep
