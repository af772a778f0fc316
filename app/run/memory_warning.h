// Whether the factors that clients keep (FedEP) fit into main memory, before they grow for days.
//
//   const std::string line = memory_warning(factor_bytes(recipe, phases, 500, touched),
//                                           mean_bytes(phases, weights), available_memory());
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>

#include "fedep/config/recipe.h"
#include "fedep/round/phase.h"

namespace fedep {

// Of one client's factor, with its optimizer's slots, if it has numbers for so many weights.
std::uint64_t bytes_of_factor(const Phase& phase, std::size_t weights);

// Of q's means that a phase's factors refer to (round/mean_shelf.h).
std::uint64_t bytes_of_means(const Phase& phase, std::size_t weights);

// Bytes of the factors of all clients that a phase will have asked; of the phase with most. `weights`:
// of each phase, that a factor has numbers for (sim/sparse/sparse_factors.h). 0 where they are in files
// (checkpoint.sites) or nobody keeps one.
std::uint64_t factor_bytes(const Recipe& recipe, std::span<const Phase> phases, std::size_t clients,
                           std::span<const std::size_t> weights);

// Of these means, bytes in memory of each process wherever factors are; of the phase with most.
std::uint64_t mean_bytes(std::span<const Phase> phases, std::size_t weights);

// What the system could still give; nothing where it does not say.
std::optional<std::uint64_t> available_memory(
    const std::filesystem::path& meminfo = "/proc/meminfo");

// A line, or nothing if they fit.
std::string memory_warning(std::uint64_t factors, std::uint64_t means,
                           std::optional<std::uint64_t> available);

}  // namespace fedep
