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

}  // namespace

double joint_norm(const Message& delta) {
  const double lambda = delta.isotropic() ? double(delta.size()) * double(delta.lambda_scalar()) *
                                                double(delta.lambda_scalar())
                                          : sum_of_squares(delta.lambda_vector().span());
  return std::sqrt(sum_of_squares(delta.eta().span()) + lambda);
}

double clip_factor(double norm, double limit) {
  return limit > 0 && norm >= limit ? limit / norm : 1.0;
}

}  // namespace fedep
