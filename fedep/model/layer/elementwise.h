// Small loops over rows of floats: biases, rectifiers, squares, dropout; at the full width of the
// CPU's vector unit, with the same bits at every width (vector_width.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fedep/random/stream.h"

namespace fedep {

// y += x
void add_to(const float* x, std::size_t count, float* y);
// sum += x²
void add_squares(const float* x, std::size_t count, float* sum);
// x = y > 0 ? x : 0, where y is what a rectifier gave
void mask_by_sign(const float* y, std::size_t count, float* x);
// x *= y
void scale_by(const float* y, std::size_t count, float* x);

// y[row, c] += bias[c], and then rectified.
void add_bias(const float* bias, std::size_t rows, std::size_t channels, float* y);
void add_bias_rectify(const float* bias, std::size_t rows, std::size_t channels, float* y);

// db[c] = keep db[c] + Σ_rows dy[row, c]
void bias_gradient(const float* dy, std::size_t rows, std::size_t channels, float keep, float* db);
// sum[c] += Σ_examples (Σ_positions dy[example, position, c])²
void add_squared_bias_gradient(const float* dy, std::size_t n, std::size_t positions,
                               std::size_t channels, float* sum);

// sum[i, o] += Σ_examples (Σ_k x[example, k, i] d[example, k, o])²: squared weight gradients of a
// dense layer (k = 1, then one product of squares) or a convolution's tap, never held per example.
void add_squared_products(std::size_t n, std::size_t k, std::size_t in, std::size_t out,
                          const float* x, const float* d, float* sum);

// Inverted dropout: what stays is divided by 1 - rate. `factor` gets 0 or 1 / (1 - rate) for units
// first .. first + factor.size() of the address; `first` is a multiple of 16, `rate` of 1/256. A
// unit's fate depends on the address and its number alone.
void fill_dropout(const Address& address, double rate, std::size_t first, std::span<float> factor);

}  // namespace fedep
