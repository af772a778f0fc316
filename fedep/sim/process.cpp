#include "fedep/sim/process.h"

#include <limits>

#if __has_include(<malloc.h>)
#include <malloc.h>
#endif

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/model/blas.h"

namespace fedep {
namespace {

void reuse_large_blocks() {
#if defined(__GLIBC__)
  mallopt(M_MMAP_MAX, 0);                                      // no block from the system directly,
  mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());  // none back to it,
  // and one heap, which all threads share: with one each, heaps that empty are given back, and two
  // threads made 0.4 of two processes' steps on StackOverflow titles.
  mallopt(M_ARENA_MAX, 1);
#endif
}

}  // namespace

void prepare_process() {
  choose_blas_kernel();
  use_one_blas_thread();
  reuse_large_blocks();
}

void check_process_is_prepared() {
  if (const int threads = blas_threads(); threads > 1) {
    throw InputError(
        fmt::format("BLAS must use one thread, but uses {}: call fedep::prepare_process() first "
                    "thing in main()",
                    threads));
  }
}

}  // namespace fedep
