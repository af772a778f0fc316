// A loop on all cores, for work on the host that the GPU waits for.
//
//   parallel_for(clients, [&](std::size_t c) { orders[c] = shuffle(c); });
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace fedep {

// `body`(i) for i in [0, count), in any order, from several threads. The first error is thrown
// again here.
template <class Body>
void parallel_for(std::size_t count, const Body& body) {
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr error;  // guarded by mutex
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < count; i = next++) body(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
    }
  };
  const std::size_t workers =
      std::min<std::size_t>(count, std::clamp(std::thread::hardware_concurrency(), 1u, 16u));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 1; i < workers; ++i) threads.emplace_back(work);
    work();
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace fedep
