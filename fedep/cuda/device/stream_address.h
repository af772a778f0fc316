// Where random numbers begin, in a form that kernels take: plain, also for compilers of C++17.
#pragma once

#include <cstdint>

namespace fedep {

// Block i of the stream is philox({i, i>>32, step, round}, key) (random/stream.h).
struct StreamAddress {
  std::uint32_t key0 = 0, key1 = 0, step = 0, round = 0;
};

}  // namespace fedep
