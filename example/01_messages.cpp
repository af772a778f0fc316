// 01: what is sent. A belief is a Gaussian in natural coordinates; combining beliefs is adding them,
// taking one out again is subtracting it.
#include <cmath>

#include <fmt/format.h>

#include "fedep/message/gaussian.h"

int main() {
  using Vector = fedep::HostVector<double>;
  using Belief = fedep::Gaussian<Vector>;

  // Two hospitals measured the same drug: means of its effects on two symptoms, and precisions.
  const Belief prior = from_mean(Vector({0.0, 0.0}), 1.0);
  const Belief first = from_mean(Vector({1.0, 0.2}), Vector({4.0, 1.0}));
  const Belief second = from_mean(Vector({0.4, 0.9}), Vector({2.0, 9.0}));

  const Belief together = product(product(prior, first), second);
  for (std::size_t i = 0; i < together.size(); ++i) {
    fmt::print("symptom {}: {:.3f} ± {:.3f}\n", i + 1, mean(together)[i],
               std::sqrt(variance(together)[i]));
  }

  // The second hospital withdraws: what is left is as if it had never been there.
  const Belief without = quotient(together, second);
  const double gap = kl(without, product(prior, first));
  fmt::print("after the second withdrew: {:.3f} and {:.3f}, off by {:.1e} nats\n", mean(without)[0],
             mean(without)[1], gap);
  return gap < 1e-12 ? 0 : 1;
}
