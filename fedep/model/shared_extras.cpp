#include "fedep/model/shared_extras.h"

#include <cmath>

namespace fedep {

SharedExtras extras_of(const Layout& layout) {
  SharedExtras out;
  std::size_t at = 0;
  for (const TensorShape& tensor : layout) {
    if (tensor.name == kLogSiteSd) {
      out.log_site_sd = at;
    } else if (tensor.name == kLogNoise) {
      out.log_noise = at;
    } else {
      out.weights += tensor.size();
    }
    at += tensor.size();
  }
  return out;
}

Likelihood likelihood_at(const Likelihood& known, const SharedExtras& extras,
                         std::span<const float> theta) {
  if (!extras.log_noise) return known;
  return {known.target, std::exp(double(theta[*extras.log_noise]))};
}

}  // namespace fedep
