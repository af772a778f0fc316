// What of a method's settings makes its precisions something else than what was inferred: deviations
// made of them would tell a setting, and are told to nobody.
#pragma once

#include <cmath>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "fedep/config/recipe.h"

namespace fedep {

struct PrecisionSetting {
  std::string why;    // "precisions are …"
  std::string key;    // of phase.inference
  std::string value;  // at which precisions are inferred
};

inline std::optional<PrecisionSetting> identity_setting(const InferenceSettings& settings) {
  return PrecisionSetting{
      .why = fmt::format("precisions are set, to alpha = {} an example, and none is inferred",
                         settings.alpha),
      .key = "name",
      .value = "\"laplace\""};
}

inline std::optional<PrecisionSetting> map_setting(const InferenceSettings&) {
  return PrecisionSetting{.why = "precisions are the prior's, and none is inferred",
                          .key = "name",
                          .value = "\"laplace\""};
}

inline std::optional<PrecisionSetting> clip_setting(const InferenceSettings& settings) {
  if (settings.clip_std == 0) return std::nullopt;
  return PrecisionSetting{
      .why = fmt::format("precisions are clipped, {} standard deviations from their mean",
                         settings.clip_std),
      .key = "clip_std",
      .value = "0"};
}

// Laplace, NGVI.
inline std::optional<PrecisionSetting> fisher_setting(const InferenceSettings& settings) {
  if (settings.scale != 1) {
    return PrecisionSetting{
        .why = fmt::format("precisions are scaled: {} times what clients inferred", settings.scale),
        .key = "scale",
        .value = "1"};
  }
  return clip_setting(settings);
}

// NGVI, IVON: the weight that initial_scale, where their running mean begins, still has after so many batches.
inline double running_mean_start(const InferenceSettings& settings, double batches) {
  return std::pow(settings.decay, batches);
}

inline std::optional<PrecisionSetting> moments_setting(const InferenceSettings& settings) {
  if (settings.rescale) {
    return PrecisionSetting{.why = "precisions are rescaled, to the norm that scaled identity has",
                            .key = "rescale",
                            .value = "false"};
  }
  if (!settings.langevin) {
    return PrecisionSetting{
        .why =
            "precisions are those of iterates without Langevin noise, which are no draws from a "
            "posterior",
        .key = "langevin",
        .value = "true"};
  }
  if (settings.shrinkage != 0) {
    return PrecisionSetting{
        .why = fmt::format("precisions are of variances that are mixed with 1, a part of {}",
                           settings.shrinkage),
        .key = "shrinkage",
        .value = "0"};
  }
  if (settings.average_within_epoch) {
    return PrecisionSetting{.why = "precisions are those of averages over an epoch, not of draws",
                            .key = "average_within_epoch",
                            .value = "false"};
  }
  return clip_setting(settings);
}

}  // namespace fedep
