// The one place that calls BLAS: products of row-major matrices, on the calling thread alone.
//
//   multiply(matrix(x, n, f), matrix(w, f, o), logits, o);                       // logits  = x w
//   multiply(transposed(matrix(x, n, f)), matrix(delta, n, o), gradient, o, 1);  // gradient += xᵀ delta
//
// OpenBLAS 0.3.21 does not know CPUs younger than itself and gives some of them kernels from 2004,
// a third of the speed. choose_blas_kernel() corrects that. Programs do not call these two one by
// one, but prepare_process() (sim/process.h).
#pragma once

#include <cstddef>
#include <string>

namespace fedep {

// Somebody's memory, seen as a matrix. `stride`: floats from one stored row to the next.
struct MatrixView {
  const float* data = nullptr;
  std::size_t rows = 0;
  std::size_t columns = 0;
  std::size_t stride = 0;
  bool transposed = false;  // stored as [columns, rows]
};

inline MatrixView matrix(const float* data, std::size_t rows, std::size_t columns) {
  return {data, rows, columns, columns, false};
}
inline MatrixView transposed(const MatrixView& m) {
  return {m.data, m.columns, m.rows, m.stride, !m.transposed};
}

// c = keep c + a b, where row i of c begins at c + i c_stride. With keep = 0 what c held is not
// read.
void multiply(const MatrixView& a, const MatrixView& b, float* c, std::size_t c_stride,
              float keep = 0.0f);

// BLAS calls use no threads of their own from here on: the simulator gives each client a core.
void use_one_blas_thread();
int blas_threads();

// What BLAS computes with, such as "SkylakeX".
std::string blas_kernel();

// Where BLAS chose a kernel that leaves this CPU's vector units idle and $OPENBLAS_CORETYPE does
// not say what to use, chooses one that uses them. Gives back blas_kernel(). Not while another
// thread is in BLAS.
std::string choose_blas_kernel();

}  // namespace fedep
