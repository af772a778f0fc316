#include "fedep/model/layer/vector_width.h"

namespace fedep {
namespace {

VectorWidth find_width() {
  if (__builtin_cpu_supports("avx512f")) return VectorWidth::avx512;
  if (__builtin_cpu_supports("avx2")) return VectorWidth::avx2;
  return VectorWidth::baseline;
}

}  // namespace

VectorWidth vector_width() {
  static const VectorWidth width = find_width();
  return width;
}

}  // namespace fedep
