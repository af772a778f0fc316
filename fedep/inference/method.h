// Inference methods by name: what the rest of the program asks of one. How a method infers is in its
// own file, and registry.h has a row for each.
//
//   const Method& method = find_method("laplace");
//   check_inference(phase.inference, client.epochs);
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/inference/precision_setting.h"
#include "fedep/message/gaussian.h"

namespace fedep {

struct Method {
  std::string_view name;
  std::string_view title;  // for people
  std::string_view summary;
  Family family;                // of its tilted distributions
  bool needs_variance = false;  // Cohort::variance(), which chains keep only where it is asked for
  bool own_chain = false;       // steps of its own, in place of the cohort's chains
  bool on_gpu = true;
  // Where data say nothing its tilted distribution is the cavity, once nothing is left of a start that
  // the settings give it.
  bool keeps_cavity = false;
  // Throws InputError for a setting that makes no sense with the method or the chain's length. Null:
  // every value that a recipe may have makes sense.
  void (*check)(const InferenceSettings& settings, int chain_epochs) = nullptr;
  // What in these settings makes its precisions something else than inferred. Null: nothing can.
  std::optional<PrecisionSetting> (*precision_setting)(const InferenceSettings& settings) = nullptr;
  // The part of a visit's precision that is a setting still, after so many batches of squared
  // gradients. Null: none is.
  double (*start_left)(const InferenceSettings& settings, double batches) = nullptr;
  // Whether its precisions follow from alpha. Null: they never do.
  bool (*reads_alpha)(const InferenceSettings& settings) = nullptr;
};

std::span<const Method> methods();
// Throws InputError that suggests the nearest name, also one that is in row_method.h alone.
const Method& find_method(std::string_view name);
// The named method's own check.
void check_inference(const InferenceSettings& settings, int chain_epochs);
// Whether visits give other answers with another alpha; methods that are no row of this table read none.
bool reads_alpha(const InferenceSettings& settings);
// Throws InputError if a chain ends before its first posterior sample: FedPA would then be FedAvg.
void check_samples(const InferenceSettings& settings, int chain_epochs);

}  // namespace fedep
