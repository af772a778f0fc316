#include "fedep/sim/rows/site_model.h"

#include <cmath>
#include <cstdint>
#include <numeric>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/rows/row_method.h"
#include "fedep/message/error.h"

namespace fedep {

std::string extras_key(const ModelSettings& model) {
  return model.site_intercept ? "model.site_intercept" : "model.noise = \"estimated\"";
}

SiteParts parts_of(const SharedExtras& extras) {
  return {.intercept = extras.log_site_sd.has_value(), .noise = extras.log_noise.has_value()};
}

OutcomeMoments outcome_moments(const Dataset& data) {
  double n = 0, mean = 0, squares = 0;
  Batch batch;
  for (std::size_t k = 0; k < data.clients().size(); ++k) {
    std::vector<std::uint32_t> all(data.clients()[k].second);
    if (all.empty()) continue;
    std::iota(all.begin(), all.end(), 0u);
    data.train_batch(k, all, nullptr, batch);
    // A client's own sums,
    const auto own_n = double(batch.reals.size());
    const double own_mean = std::accumulate(batch.reals.begin(), batch.reals.end(), 0.0) / own_n;
    double own_squares = 0;
    for (const float y : batch.reals) own_squares += (y - own_mean) * (y - own_mean);
    // put together with the others'.
    const double gap = own_mean - mean, both = n + own_n;
    squares += own_squares + gap * gap * n * own_n / both;
    mean += gap * own_n / both;
    n = both;
  }
  const double deviation = std::sqrt(squares / std::max(1.0, n - 1));
  if (!(deviation > 0) || !std::isfinite(deviation)) {
    throw InputError(
        fmt::format("model.noise = \"estimated\", model.site_intercept: the outcome must vary, but "
                    "its deviation "
                    "over {} training rows is {}",
                    n, deviation));
  }
  return {n, mean, deviation};
}

void check_outcome_prior(const Recipe& recipe, const std::vector<CoordinatePrior>& own,
                         const SharedExtras& extras, const OutcomeMoments& outcome) {
  constexpr double kFarthest = 3;  // deviations of the intercept's prior
  const std::string what = fmt::format("{}: the outcome has mean {:.4g} and deviation {:.4g}",
                                       extras_key(recipe.model), outcome.mean, outcome.deviation);
  const double typical = 1 / (outcome.deviation * outcome.deviation);
  PriorSettings intercept = recipe.server.prior.value();
  for (const CoordinatePrior& prior : own) {
    if (prior.coordinate == extras.intercept()) intercept = {prior.mean, prior.precision};
  }
  const double distance = std::abs(outcome.mean - intercept.mean) * std::sqrt(intercept.precision);
  if (distance > kFarthest) {
    throw InputError(fmt::format(
        "{}, {:.1f} deviations from the intercept's prior N({:.4g}, {:.4g}²), and what that cannot "
        "explain would be taken for noise; add [[prior]] with coefficient = \"intercept\", mean = "
        "{:.3g} and precision = {:.2g}, or subtract the mean from the outcome",
        what, distance, intercept.mean, 1 / std::sqrt(intercept.precision), outcome.mean, typical));
  }
  const double precision = recipe.server.prior->precision;
  if (precision > outcome.rows * typical) {  // which is about what all rows say of a coefficient
    throw InputError(fmt::format(
        "{}, and a prior of deviation {:.4g} would hold its coefficients more than all rows do; "
        "set "
        "server.prior.precision to {:.2g} or less, which is one deviation of the outcome",
        what, 1 / std::sqrt(precision), typical));
  }
}

bool needs_deviation(const SharedExtras& extras, TargetKind target) {
  return extras.any() && target == TargetKind::real;
}

std::vector<CoordinatePrior> extra_priors(const SharedExtras& extras, TargetKind target,
                                          double deviation) {
  std::vector<CoordinatePrior> out;
  if (extras.log_site_sd) {
    const double unit = needs_deviation(extras, target) ? deviation : 1;
    out.push_back({*extras.log_site_sd, std::log(kTypicalSiteSd * unit), kExtraPrecision});
  }
  if (extras.log_noise) {
    out.push_back({*extras.log_noise, std::log(deviation), kExtraPrecision});
  }
  return out;
}

void check_site_model(const Recipe& recipe) {
  if (!has_extras(recipe.model)) return;
  const std::string key = extras_key(recipe.model);
  const auto refuse = [&](const std::string& what, const std::string& came) {
    throw InputError(fmt::format("{} needs {}, but {}", key, what, came));
  };
  if (!recipe.server.prior) refuse("a proper prior", "server.prior is flat");
  if (recipe.client.weight_decay != 0) {
    refuse("client.weight_decay = 0 (server.prior does that)",
           fmt::format("it is {}", recipe.client.weight_decay));
  }
  for (std::size_t i = 0; i < recipe.phases.size(); ++i) {
    const PhaseSettings& phase = recipe.phases[i];
    if (find_algorithm(phase.algorithm).needs != Needs::tilted) {
      refuse("phases that infer a distribution (fed_ep, fed_sep)",
             fmt::format("phase.{}.algorithm is {}", i, phase.algorithm));
    }
    if (phase.curvature != CurvatureChoice::none) {
      refuse("no last round of curvature", fmt::format("phase.{}.curvature is full", i));
    }
    const InferenceSettings inference = phase.inference.value_or(InferenceSettings{});
    if (!inference.name.empty() && inference.name != kDefaultRowMethod) {
      refuse(fmt::format("phase.{}.inference.name = \"{}\"", i, kDefaultRowMethod),
             fmt::format("it is {}", inference.name));
    }
    if (inference.family != FamilyChoice::automatic && inference.family != FamilyChoice::full) {
      refuse("the family full", fmt::format("phase.{}.inference.family is not", i));
    }
  }
}

}  // namespace fedep
