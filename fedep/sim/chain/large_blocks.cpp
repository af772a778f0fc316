#include "fedep/sim/chain/large_blocks.h"

#include <limits>

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace fedep {

void reuse_large_blocks() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);                                      // no block from the system directly,
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());  // none back to it,
  // and one heap, which all threads share: with one each, heaps that empty are given back, and two
  // threads made 0.4 of two processes' steps on StackOverflow titles.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace fedep
