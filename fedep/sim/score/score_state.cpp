#include "fedep/sim/score/score_state.h"

namespace fedep {

bool are_draws_due(const Recipe& recipe, const ServerState& state, bool last) {
  const EvaluateSettings& settings = recipe.evaluate;
  if (settings.samples <= 0) return false;
  return last || (settings.marginal_every > 0 && state.round % settings.marginal_every == 0);
}

bool are_temperatures_due(const Recipe& recipe, const ServerState& state, bool last) {
  const int every = recipe.evaluate.calibrated_every;
  return last || (every > 0 && state.round % every == 0);
}

namespace detail {

std::string with_suffix(std::string_view name, std::string_view suffix) {
  constexpr std::string_view kMarginal = "_marginal";
  const bool marginal = name.ends_with(kMarginal);
  std::string out(name.substr(0, name.size() - (marginal ? kMarginal.size() : 0)));
  out += suffix;
  return marginal ? out.append(kMarginal) : out;
}

bool depends_on_temperature(std::string_view name) {
  return name.starts_with("nll") || name.starts_with("ece") || name.starts_with("brier");
}

}  // namespace detail
}  // namespace fedep
