#include "app/posterior/stateless_note.h"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"

namespace fedep {

std::string stateless_note(const SavedPosterior& saved, std::int64_t clients) {
  if (saved.recipe.server.clients_per_round >= clients) return {};
  const PhaseSettings& phase =
      saved.recipe.phases[std::size_t(std::max<std::int64_t>(saved.state.phase, 0))];
  const Algorithm& algorithm = find_algorithm(phase.algorithm);
  if (phase.cavity.value_or(algorithm.cavity) != CavityKind::share) return {};
  return fmt::format(
      "{} asked {} of {} clients a round, and they keep nothing: those that came last show in the "
      "means, "
      "by {}",
      phase.algorithm, saved.recipe.server.clients_per_round, clients,
      phase.cooldown ? "about a tenth of a deviation after a cooldown of a hundred rounds"
                     : "some tenths of a deviation; a cooldown of a hundred rounds halves that");
}

}  // namespace fedep
