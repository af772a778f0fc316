#include "fedep/sim/large_blocks.h"

#include <limits>

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

namespace fedep {

void reuse_large_blocks() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);                                      // no block from the system directly,
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());  // none back to it,
  mallopt(M_ARENA_MAX, 1);  // and one heap, which all threads share
#endif
}

}  // namespace fedep
