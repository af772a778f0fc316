// Parameters that clients share beside a linear model's weights, behind them in every message: what
// intercepts of clients' own vary by, and noise that is not known. Nobody's outputs are made of them.
//
//   log_site_sd   l = log τ: client k's intercept is b_k ~ N(intercept, τ²)       model.site_intercept
//   log_noise     s = log σ: a number is N(output, σ²)                            model.noise = "estimated"
//
//   const SharedExtras extras = extras_of(model.layout());
//   if (extras.log_noise) use(std::exp(theta[*extras.log_noise]));
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string_view>

#include "fedep/message/layout.h"
#include "fedep/model/likelihood.h"

namespace fedep {

inline constexpr std::string_view kLogSiteSd = "log_site_sd";
inline constexpr std::string_view kLogNoise = "log_noise";

// log τ ~ N(log 0.5, 1): half a unit of log odds or log rates, times or over e; of a number, half the outcome's
// standard deviation.
inline constexpr double kTypicalSiteSd = 0.5;
inline constexpr double kExtraPrecision = 1.0;  // and log σ ~ N(log sd of the outcome, 1)

struct SharedExtras {
  std::size_t weights = 0;  // coordinates before them: the model's own
  std::optional<std::size_t> log_site_sd = {}, log_noise = {};  // coordinates

  bool any() const { return log_site_sd || log_noise; }
  std::size_t intercept() const { return weights - 1; }  // of a model with one output
};

SharedExtras extras_of(const Layout& layout);

// With the noise that these weights have, where it is among them.
Likelihood likelihood_at(const Likelihood& known, const SharedExtras& extras,
                         std::span<const float> theta);

}  // namespace fedep
