#include "fedep/model/blas.h"

#include <cblas-openblas.h>
#include <dlfcn.h>

#include <array>
#include <cassert>
#include <cstdlib>
#include <limits>
#include <string_view>

namespace fedep {
namespace {

int blas_int(std::size_t n) {
  assert(n <= std::size_t(std::numeric_limits<int>::max()));
  return int(n);
}

// The kernel family that this CPU's vector units want; empty: nothing better than the default.
std::string wanted_kernel() {
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {
    return "SkylakeX";
  }
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return "Haswell";
  return {};
}

// Kernels older than AVX2.
bool is_old(std::string_view kernel) {
  constexpr std::array kOld{"Prescott", "Core2",        "Penryn",    "Dunnington", "Nehalem",
                            "Opteron",  "Opteron_SSE3", "Barcelona", "Bobcat",     "Atom",
                            "Nano",     "Sandybridge",  "Katmai",    "Coppermine", "Northwood",
                            "Banias",   "Athlon",       "Unknown"};
  for (const std::string_view old : kOld) {
    if (kernel == old) return true;
  }
  return false;
}

using Reset = void (*)();

}  // namespace

void multiply(const MatrixView& a, const MatrixView& b, float* c, std::size_t c_stride,
              float keep) {
  assert(a.columns == b.rows && c_stride >= b.columns);
  if (a.rows == 0 || b.columns == 0) return;
  cblas_sgemm(CblasRowMajor, a.transposed ? CblasTrans : CblasNoTrans,
              b.transposed ? CblasTrans : CblasNoTrans, blas_int(a.rows), blas_int(b.columns),
              blas_int(a.columns), 1.0f, a.data, blas_int(a.stride), b.data, blas_int(b.stride),
              keep, c, blas_int(c_stride));
}

void use_one_blas_thread() { openblas_set_num_threads(1); }

int blas_threads() { return openblas_get_num_threads(); }

std::string blas_kernel() { return openblas_get_corename(); }

// OpenBLAS picks its kernels in a constructor, before any of our code runs. It can be told to pick
// again through two functions that it exports for its own use; where they are missing, what it
// picked stays.
std::string choose_blas_kernel() {
  const std::string wanted = wanted_kernel();
  if (std::getenv("OPENBLAS_CORETYPE") != nullptr || wanted.empty() || !is_old(blas_kernel())) {
    return blas_kernel();
  }
  const auto forget = reinterpret_cast<Reset>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_quit"));
  const auto choose = reinterpret_cast<Reset>(dlsym(RTLD_DEFAULT, "gotoblas_dynamic_init"));
  if (forget == nullptr || choose == nullptr) return blas_kernel();
  setenv("OPENBLAS_CORETYPE", wanted.c_str(), 1);
  forget();
  choose();
  unsetenv("OPENBLAS_CORETYPE");
  return blas_kernel();
}

}  // namespace fedep
