// Loops compiled once per width of vector unit, the widest this CPU has chosen when they run. No
// sum is reordered and no product fused by it, so every width gives the same bits.
//
//   void add_to(const float* x, std::size_t count, float* y) {
//     at_full_width([=]() __attribute__((always_inline)) {
//       for (std::size_t i = 0; i < count; ++i) y[i] += x[i];
//     });
//   }
//
// (The compiler's own target_clones does the same before main, where the thread sanitizer crashes.)
#pragma once

namespace fedep {

enum class VectorWidth { baseline, avx2, avx512 };

// What this CPU has.
VectorWidth vector_width();

template <class Body>
[[gnu::target("avx2"), gnu::noinline]] auto at_avx2(Body body) {
  return body();
}

template <class Body>
[[gnu::target("avx512f"), gnu::noinline]] auto at_avx512(Body body) {
  return body();
}

// The body is passed by value: what it captures then cannot be what it writes to.
template <class Body>
auto at_full_width(Body body) {
  switch (vector_width()) {
    case VectorWidth::avx512:
      return at_avx512(body);
    case VectorWidth::avx2:
      return at_avx2(body);
    case VectorWidth::baseline:
      break;
  }
  return body();
}

}  // namespace fedep
