#include "fedep/sim/ranks/round_shares.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/round/round_parts.h"
#include "fedep/sim/chain/chain.h"

namespace fedep {
namespace {

// A visit without its steps (a cavity, a delta, a factor's step) costs about as much as one of them.
constexpr std::int64_t kVisitWithoutSteps = 1;

// A report without its delta, as it travels.
struct ReportLine {
  std::uint64_t client;
  Outcome outcome;
  double weight;
  VisitNumbers numbers;
};

}  // namespace

std::int64_t visit_cost(const ClientSettings& settings, const ClientInfo& client) {
  return kVisitWithoutSteps + std::int64_t(steps_of_visit(settings, false, client.examples));
}

std::optional<std::size_t> RoundShares::Shares::rank_of(std::size_t client) const {
  const auto found = std::ranges::lower_bound(clients, client);
  if (found == clients.end() || *found != client) return std::nullopt;
  return ranks[std::size_t(found - clients.begin())];
}

void RoundShares::begin(std::uint64_t seed, std::int64_t round, const Phase& phase,
                        std::span<const ClientTask> clients) {
  std::vector<std::size_t> asked;
  for (const ClientTask& task : clients) asked.push_back(task.client);
  const bool is_planned = next_.round == round && next_.clients == asked;
  now_ = is_planned ? std::move(next_) : share(round, std::move(asked), {});
  next_ = {};
  if (!phase.stateful()) return;
  parts_.sites.bring(placed(now_));
  if (round + 1 >= phase.end_round()) return;
  next_ = share(round + 1,
                sample_clients(seed, round + 1, parts_.population.size(), phase.clients_per_round),
                now_);
  Shares idle = next_;  // whose factors no visit of this round moves
  for (std::size_t i = idle.clients.size(); i-- > 0;) {
    if (!now_.rank_of(idle.clients[i])) continue;
    idle.clients.erase(idle.clients.begin() + std::ptrdiff_t(i));
    idle.ranks.erase(idle.ranks.begin() + std::ptrdiff_t(i));
  }
  parts_.sites.begin_bringing(placed(idle));
}

void RoundShares::end(const Phase& phase) {
  if (phase.stateful()) parts_.sites.end_bringing();
}

RoundShares::Shares RoundShares::share(std::int64_t round, std::vector<std::size_t> clients,
                                       const Shares& before) const {
  Shares shares{.round = round, .clients = std::move(clients), .ranks = {}, .loads = {}};
  for (const std::size_t client : shares.clients) {
    const ClientInfo& info = parts_.population[client];
    const std::optional<std::size_t> played = before.rank_of(client);
    shares.loads.push_back({parts_.cost(info), played ? played : parts_.sites.home(info.key)});
  }
  shares.ranks = share_out(shares.loads, {.ranks = parts_.ranks.size(), .threads = parts_.threads});
  return shares;
}

std::vector<PlacedClient> RoundShares::placed(const Shares& shares) const {
  std::vector<PlacedClient> out;
  for (std::size_t i = 0; i < shares.clients.size(); ++i) {
    out.push_back({parts_.population[shares.clients[i]].key, shares.ranks[i]});
  }
  return out;
}

std::vector<ClientTask> RoundShares::own(std::span<const ClientTask> clients) const {
  std::vector<ClientTask> mine;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    if (now_.ranks[i] == parts_.ranks.rank()) mine.push_back(clients[i]);
  }
  return mine;
}

std::vector<ClientTask> RoundShares::own_longest_first(std::span<const ClientTask> clients) const {
  std::vector<ClientTask> mine;
  for (const std::size_t i : longest_first(now_.loads)) {
    if (now_.ranks[i] == parts_.ranks.rank()) mine.push_back(clients[i]);
  }
  return mine;
}

std::vector<std::size_t> RoundShares::own_of(std::span<const std::size_t> taken) const {
  std::vector<std::size_t> mine;
  for (const std::size_t client : taken) {
    if (*now_.rank_of(client) == parts_.ranks.rank()) mine.push_back(client);
  }
  return mine;
}

void RoundShares::settled(std::int64_t round, std::span<const std::size_t> taken) {
  std::vector<PlacedClient> all;
  for (const std::size_t client : taken) {
    all.push_back({parts_.population[client].key, *now_.rank_of(client)});
  }
  parts_.sites.settled(round, all);
}

std::vector<Report> gather_reports(Ranks& ranks, const std::vector<Report>& mine) {
  std::vector<ReportLine> lines;
  for (const Report& report : mine) {
    lines.push_back({report.client, report.outcome, report.weight, report.numbers});
  }
  std::vector<Report> all;
  for (const Bytes& bytes : ranks.gather(std::as_bytes(std::span(lines)))) {
    for (const ReportLine& line : values_of<ReportLine>(bytes)) {
      all.push_back({.client = line.client,
                     .outcome = line.outcome,
                     .delta = {},
                     .weight = line.weight,
                     .numbers = line.numbers,
                     .error = {}});
    }
  }
  return all;
}

void check_same_hash(Ranks& ranks, std::int64_t round, std::uint64_t hash) {
  const std::vector<Bytes> all = ranks.gather(bytes_of(hash));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    throw RunError(fmt::format(
        "round {}: all ranks must have come to the same q, but rank {}'s is another than rank 0's: "
        "bad memory, processors that compute differently, or a mistake of this program",
        round, rank));
  }
}

}  // namespace fedep
