#include "app/run/memory_warning.h"

#include <algorithm>
#include <fstream>

#include <fmt/format.h>

#include "fedep/optim/optimizer.h"
#include "fedep/round/mean_shelf.h"

namespace fedep {

std::uint64_t bytes_of_factor(const Phase& phase, std::size_t weights) {
  const std::uint64_t numbers = weights + lambda_size(phase.family, weights);
  const OptimizerSettings& optimizer = phase.factor_optimizer;
  const std::size_t slots = find_optimizer(optimizer.name).slots(optimizer).size();
  return sizeof(float) * numbers * (1 + slots);
}

std::uint64_t bytes_of_means(const Phase& phase, std::size_t weights) {
  return phase.shares_means ? std::uint64_t(phase.rounds) * weights * sizeof(float) : 0;
}

std::uint64_t factor_bytes(const Recipe& recipe, std::span<const Phase> phases, std::size_t clients,
                           std::span<const std::size_t> weights) {
  std::uint64_t most = 0;
  if (recipe.checkpoint.sites == SiteMemory::disk) return most;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    if (!phase.stateful()) continue;
    const std::uint64_t asked = std::uint64_t(phase.rounds) * phase.clients_per_round;
    most = std::max(most,
                    std::min<std::uint64_t>(asked, clients) * bytes_of_factor(phase, weights[i]));
  }
  return most;
}

std::uint64_t mean_bytes(std::span<const Phase> phases, std::size_t weights) {
  std::uint64_t most = 0;
  for (const Phase& phase : phases) most = std::max(most, bytes_of_means(phase, weights));
  return std::min<std::uint64_t>(most, MeanShelf::kMostBytes);
}

std::optional<std::uint64_t> available_memory(const std::filesystem::path& meminfo) {
  std::ifstream file(meminfo);
  std::string key;
  for (std::uint64_t kib = 0; file >> key >> kib; file.ignore(1000, '\n')) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return std::nullopt;
}

std::string memory_warning(std::uint64_t factors, std::uint64_t means,
                           std::optional<std::uint64_t> available) {
  if (!available || factors + means <= *available) return {};
  const std::string shared =
      means > 0 ? fmt::format(" ({:.1f} GB are q's means, in each process)", double(means) / 1e9)
                : "";
  return fmt::format(
      "clients' factors will take {:.1f} GB{} of this machine's memory, of which {:.1f} GB are "
      "available{}",
      double(factors + means) / 1e9, shared, double(*available) / 1e9,
      factors > 0 ? "; checkpoint.sites = \"disk\" keeps them in files" : "");
}

}  // namespace fedep
