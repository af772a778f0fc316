#include "fedep/sim/ranks/share_out.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "fedep/message/check.h"

namespace fedep {
namespace {

// A factor stays where it is if that costs at most this part of what everybody has to do on average.
constexpr std::int64_t kWorthAMove = 50;

struct Worker {
  std::size_t rank = 0;
  std::int64_t busy = 0;
};

// With the least to do, of one rank or of all; the first of several.
Worker& least_busy(std::vector<Worker>& workers, std::optional<std::size_t> rank) {
  Worker* least = nullptr;
  for (Worker& worker : workers) {
    if (rank && worker.rank != *rank) continue;
    if (least == nullptr || worker.busy < least->busy) least = &worker;
  }
  return *least;
}

// Visits that are not where their factors are change places with others that are not either, or have
// none, as long as nobody gets more to do than whoever has most.
void send_home(std::span<const VisitLoad> visits, std::size_t size,
               std::vector<std::size_t>& ranks) {
  std::vector<std::int64_t> busy(size, 0);
  for (std::size_t i = 0; i < visits.size(); ++i) busy[ranks[i]] += visits[i].cost;
  const std::int64_t most = std::ranges::max(busy);
  const auto is_home = [&](std::size_t i) { return visits[i].home == ranks[i]; };
  for (std::size_t i = 0; i < visits.size(); ++i) {
    if (!visits[i].home || is_home(i)) continue;
    const std::size_t away = ranks[i], home = *visits[i].home;
    for (std::size_t j = 0; j < visits.size(); ++j) {
      if (ranks[j] != home || is_home(j)) continue;
      const std::int64_t more = visits[i].cost - visits[j].cost;
      if (busy[home] + more > most || busy[away] - more > most) continue;
      busy[home] += more;
      busy[away] -= more;
      std::swap(ranks[i], ranks[j]);
      break;
    }
  }
}

}  // namespace

std::vector<std::size_t> longest_first(std::span<const VisitLoad> visits) {
  std::vector<std::size_t> order(visits.size());
  std::iota(order.begin(), order.end(), std::size_t(0));
  std::ranges::stable_sort(
      order, [&](std::size_t a, std::size_t b) { return visits[a].cost > visits[b].cost; });
  return order;
}

std::vector<std::size_t> share_out(std::span<const VisitLoad> visits, const Workforce& workforce) {
  check_positive("share_out", "number of ranks", double(workforce.ranks));
  check_positive("share_out", "number of threads", double(workforce.threads));
  // Thread by thread, so that the first visits go to different ranks.
  std::vector<Worker> workers;
  for (std::size_t thread = 0; thread < workforce.threads; ++thread) {
    for (std::size_t rank = 0; rank < workforce.ranks; ++rank) workers.push_back({rank, 0});
  }
  std::int64_t all = 0;
  for (const VisitLoad& visit : visits) all += visit.cost;
  const std::int64_t little = all / std::int64_t(workers.size()) / kWorthAMove;
  std::vector<std::size_t> ranks(visits.size());
  for (const std::size_t i : longest_first(visits)) {
    Worker* chosen = &least_busy(workers, std::nullopt);
    if (visits[i].home) {
      Worker& at_home = least_busy(workers, visits[i].home);
      if (at_home.busy <= chosen->busy + little) chosen = &at_home;
    }
    chosen->busy += visits[i].cost;
    ranks[i] = chosen->rank;
  }
  send_home(visits, workforce.ranks, ranks);
  return ranks;
}

}  // namespace fedep
