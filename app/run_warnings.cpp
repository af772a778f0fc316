#include "app/run_warnings.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fedep/sim/chain.h"
#include "fedep/sim/prior_pull.h"

namespace fedep {
namespace {

bool anybody_makes_steps(const ClientSettings& client, bool pooled, const Population& population) {
  for (std::size_t c = 0; c < population.size(); ++c) {
    if (makes_steps(client, pooled, population[c].examples)) return true;
  }
  return false;
}

}  // namespace

std::vector<std::string> warnings_of(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Task& task) {
  std::vector<std::string> lines;
  if (const Dataset* const data = task.data(); data != nullptr) {
    const DatasetInfo& info = data->info();
    if (info.skipped_records > 0) {
      lines.push_back(
          fmt::format("{} bad records were left out{}{}", info.skipped_records,
                      info.first_skipped.empty() ? "" : "; the first: ", info.first_skipped));
    }
    if (data->test_size() == 0) {
      lines.emplace_back("no examples are held out (data.test_fraction), so there are no scores");
    }
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const Algorithm& algorithm = *phases[i].algorithm;
      if (anybody_makes_steps(recipe.client, algorithm.pools_epochs, task.population())) continue;
      lines.push_back(fmt::format(
          "phase.{} ({}): no client has the {} examples of a batch (client.batch), so none makes a "
          "step",
          i, algorithm.name, recipe.client.batch));
    }
  }
  for (const StrongPull& pull : strong_pulls(recipe, phases, task.population())) {
    lines.push_back(to_text(pull));
  }
  return lines;
}

std::string noise_doubt(const Metrics& scores, double noise, std::size_t examples) {
  const auto rmse =
      std::ranges::find_if(scores, [](const auto& score) { return score.first == "rmse"; });
  if (rmse == scores.end() || examples == 0) return {};
  const double ratio = rmse->second / noise;
  // The log of an RMSE of n normal errors has a standard deviation of 1/√(2n).
  const double chance = 2 / std::sqrt(2.0 * double(examples));
  const double off = std::fabs(std::log(ratio));
  if (!std::isfinite(off) || off <= std::max(std::log(1.25), chance)) return {};
  return fmt::format(
      "the held-out RMSE is {:.3g} and model.noise {:.3g}: intervals are about {:.3g} times too "
      "{}; set model.noise near {:.3g} (docs/own_model.md)",
      rmse->second, noise, std::exp(off), ratio > 1 ? "narrow" : "wide", rmse->second);
}

}  // namespace fedep
