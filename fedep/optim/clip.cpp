#include "fedep/optim/clip.h"

#include <array>
#include <cmath>

namespace fedep {
namespace {

// Eight running sums that a compiler can keep in vector registers; their order is fixed, so the
// bits are.
double sum_of_squares(std::span<const float> x) {
  std::array<double, 8> lanes{};
  std::size_t i = 0;
  for (; i + 8 <= x.size(); i += 8) {
    for (std::size_t j = 0; j < 8; ++j) lanes[j] += double(x[i + j]) * double(x[i + j]);
  }
  for (; i < x.size(); ++i) lanes[0] += double(x[i]) * double(x[i]);
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

double squares_of_lambda(const Message& delta) {
  switch (delta.family()) {
    case Family::isotropic:
      return double(delta.size()) * double(delta.lambda_scalar()) * double(delta.lambda_scalar());
    case Family::diagonal:
      return sum_of_squares(delta.lambda_vector().span());
    case Family::full:
      break;
  }
  const std::span<const float> packed = delta.lambda_span();
  double diagonal = 0;
  for (std::size_t i = 0; i < delta.size(); ++i) {
    const double x = double(packed[packed_index(i, i)]);
    diagonal += x * x;
  }
  return 2 * sum_of_squares(packed) - diagonal;
}

}  // namespace

double joint_norm(const Message& delta) {
  return std::sqrt(sum_of_squares(delta.eta().span()) + squares_of_lambda(delta));
}

double clip_factor(double norm, double limit) {
  return limit > 0 && norm >= limit ? limit / norm : 1.0;
}

}  // namespace fedep
