// What the page may show of a posterior's spread: the same that every command tells.
#pragma once

#include <filesystem>
#include <optional>

#include "fedep/page/report/posterior_spread.h"
#include "fedep/store/log/history.h"

namespace fedep {

// The spread of a run's latest checkpoint, with why it is withheld, or what is to be said of it. `known`: the
// run's log as far as it is known already; null: it is read.
std::optional<PosteriorSpread> only_inferred(const std::filesystem::path& run, const History* known,
                                             std::optional<PosteriorSpread> spread);

}  // namespace fedep
