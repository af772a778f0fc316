#include "fedep/sim/coefficient_prior.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/model/registry.h"

namespace fedep {
namespace {

constexpr std::string_view kIntercept = "intercept";

struct Named {
  std::string name;
  bool is_intercept = false;
};

// In the order of a linear model's weights.
std::vector<Named> coefficients_of(const DatasetInfo& data) {
  std::vector<Named> out;
  for (const std::string& name : data.feature_names) out.push_back({name});
  out.push_back({std::string(kIntercept), true});
  return out;
}

std::string problem(const Recipe& recipe, const DatasetInfo& data) {
  if (!recipe.server.prior) {
    return "server.prior must be proper, for the coefficients that no [[prior]] names, but is flat";
  }
  if (!find_model(recipe.model.name).is_linear) {
    return fmt::format("model.name must be linear, but is {}", recipe.model.name);
  }
  if (data.table == nullptr) {
    return fmt::format("data must be a table, whose coefficients have names, but are {}",
                       data.name);
  }
  const auto infers = [](const PhaseSettings& phase) {
    return !find_algorithm(phase.algorithm).point_estimate ||
           phase.curvature != CurvatureChoice::none;
  };
  if (std::ranges::none_of(recipe.phases, infers)) {
    return "a phase must infer a posterior, but none does";
  }
  return {};
}

bool fits(const CoefficientPrior& prior, const Named& coefficient) {
  if (coefficient.is_intercept) return prior.coefficient == kIntercept;
  return fits_pattern(prior.coefficient, coefficient.name);
}

[[noreturn]] void refuse_unfit(std::size_t index, const std::string& pattern,
                               const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  const std::vector<std::string_view> candidates(names.begin(), names.end());
  constexpr std::size_t kMost = 20;
  throw InputError(fmt::format(
      "prior.{}.coefficient must fit a coefficient, but {} fits none{}; there are {}", index,
      shown(pattern), suggestion(pattern, candidates), shown_list(names, kMost)));
}

// By coefficient; none: server.prior.
std::vector<std::optional<PriorSettings>> own_priors(const Recipe& recipe,
                                                     const std::vector<Named>& coefficients) {
  std::vector<std::optional<PriorSettings>> out(coefficients.size());
  for (std::size_t i = 0; i < recipe.priors.size(); ++i) {
    const CoefficientPrior& prior = recipe.priors[i];
    bool found = false;
    for (std::size_t j = 0; j < coefficients.size(); ++j) {
      if (!fits(prior, coefficients[j])) continue;
      found = true;
      out[j] = PriorSettings{.mean = prior.mean, .precision = prior.precision};
    }
    if (!found) refuse_unfit(i, prior.coefficient, coefficients);
  }
  return out;
}

std::string gaussian_text(const PriorSettings& prior) {
  return fmt::format("N({:.4g}, {:.4g}²)", prior.mean, 1 / std::sqrt(prior.precision));
}

}  // namespace

bool fits_pattern(std::string_view pattern, std::string_view name) {
  std::size_t at = 0, in = 0;  // where both are read,
  std::size_t star = std::string_view::npos,
              begun = 0;  // the last *, and where what it stands for ends
  while (in < name.size()) {
    if (at < pattern.size() && pattern[at] == '*') {
      star = at++;
      begun = in;
    } else if (at < pattern.size() && pattern[at] == name[in]) {
      ++at;
      ++in;
    } else if (star != std::string_view::npos) {
      at = star + 1;
      in = ++begun;
    } else {
      return false;
    }
  }
  return pattern.find_first_not_of('*', at) == std::string_view::npos;
}

std::vector<CoordinatePrior> coefficient_priors(const Recipe& recipe, const DatasetInfo& data) {
  if (recipe.priors.empty()) return {};
  if (const std::string why = problem(recipe, data); !why.empty()) {
    throw InputError("[[prior]]: " + why);
  }
  const std::vector<Named> coefficients = coefficients_of(data);
  const auto own = own_priors(recipe, coefficients);
  std::vector<CoordinatePrior> out;
  for (std::size_t j = 0; j < own.size(); ++j) {
    if (!own[j]) continue;
    for (std::size_t c = 0; c < data.outputs; ++c) {
      out.push_back({j * data.outputs + c, own[j]->mean, own[j]->precision});
    }
  }
  return out;
}

void check_prior_families(const Recipe& recipe, const std::vector<Phase>& phases) {
  if (recipe.priors.empty()) return;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (phases[i].algorithm->point_estimate || phases[i].family != Family::isotropic) continue;
    throw InputError(fmt::format(
        "[[prior]]: phase.{}.inference must have a precision for each coefficient, but {} has one "
        "for all",
        i, phases[i].inference.name));
  }
}

std::vector<std::string> told_priors(const Recipe& recipe, const DatasetInfo& data) {
  if (recipe.priors.empty() || !problem(recipe, data).empty()) return {};
  const std::vector<Named> coefficients = coefficients_of(data);
  const auto own = own_priors(recipe, coefficients);
  std::vector<std::pair<std::string, std::vector<std::string>>> by_prior;  // in order of appearance
  std::size_t rest = 0;
  for (std::size_t j = 0; j < own.size(); ++j) {
    if (!own[j]) {
      ++rest;
      continue;
    }
    const std::string text = gaussian_text(*own[j]);
    auto at = std::ranges::find(by_prior, text, [](const auto& one) { return one.first; });
    if (at == by_prior.end()) at = by_prior.insert(at, {text, {}});
    at->second.push_back(coefficients[j].name);
  }
  constexpr std::size_t kMost = 6;
  std::vector<std::string> lines;
  for (const auto& [text, names] : by_prior) {
    lines.push_back(fmt::format("{}: {}", text, shown_list(names, kMost)));
  }
  if (rest > 0) {
    lines.push_back(fmt::format(
        "{}: {} coefficient{}", gaussian_text(*recipe.server.prior),
        by_prior.empty() ? fmt::format("all {}", rest) : fmt::format("the other {}", rest),
        rest == 1 ? "" : "s"));
  }
  return lines;
}

}  // namespace fedep
