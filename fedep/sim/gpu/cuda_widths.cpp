#include "fedep/sim/gpu/cuda_widths.h"

namespace fedep {

CohortWidths::CohortWidths(std::size_t clients) {
  for (; clients > 1; clients = (clients + 1) / 2) clients_.push_back(clients);
  clients_.push_back(1);
}

std::size_t CohortWidths::narrowest(std::size_t active) const {
  std::size_t width = 0;
  while (width + 1 < clients_.size() && clients_[width + 1] >= active) ++width;
  return width;
}

std::vector<std::size_t> step_widths(const CohortWidths& widths, const CohortOrder& order,
                                     std::size_t steps, std::size_t at_once) {
  std::vector<std::size_t> chosen;
  for (std::size_t step = 0; step < steps; ++step) {
    const std::int32_t* const counts = order.counts.data() + step * order.clients;
    std::size_t active = order.clients;  // rows up to the last with a batch
    while (active > 0 && counts[active - 1] == 0) --active;
    chosen.push_back(widths.narrowest((active + at_once - 1) / at_once));
  }
  return chosen;
}

}  // namespace fedep
