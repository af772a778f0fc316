#include "fedep/round/server_average.h"

#include <algorithm>

#include "fedep/message/check.h"

namespace fedep {

Message spread_around(const ServerAverage& average) {
  check_positive("spread_around", "rounds", double(average.rounds));
  constexpr float kLeast = 1e-20f;
  const bool each = average.lambda.size() > 0;
  const bool inferred = each || average.lambda_number != 0;
  HostVector<float> lambda = constant_like(average.mean, 0.0f);
  for (std::size_t i = 0; i < lambda.size(); ++i) {
    const float precision = each ? average.lambda[i] : average.lambda_number;
    if (inferred && !(precision > 0)) continue;  // stays improper
    const float open = inferred ? 1 / precision : 0.0f;
    lambda[i] = 1 / std::max(average.variance[i] + open, kLeast);
  }
  return from_mean(average.mean, std::move(lambda));
}

}  // namespace fedep
