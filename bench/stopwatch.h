// Seconds of a thread's CPU time and of wall time, and the median of many.
//
//   const Seconds taken = time_of([&] { chain.run_epoch(0); });
#pragma once

#include <algorithm>
#include <ctime>
#include <functional>
#include <vector>

namespace fedep {

struct Seconds {
  double cpu = 0;  // of this thread
  double wall = 0;
};

inline double read_clock(clockid_t id) {
  timespec t{};
  clock_gettime(id, &t);
  return double(t.tv_sec) + 1e-9 * double(t.tv_nsec);
}

inline Seconds now() { return {read_clock(CLOCK_THREAD_CPUTIME_ID), read_clock(CLOCK_MONOTONIC)}; }

inline Seconds time_of(const std::function<void()>& work) {
  const Seconds before = now();
  work();
  const Seconds after = now();
  return {after.cpu - before.cpu, after.wall - before.wall};
}

inline double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace fedep
