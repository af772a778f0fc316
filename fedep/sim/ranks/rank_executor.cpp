#include "fedep/sim/ranks/rank_executor.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "fedep/round/grid_pieces.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/round_parts.h"
#include "fedep/sim/ranks/share_out.h"

namespace fedep {
namespace {

// A report without its delta, as it travels.
struct ReportLine {
  std::uint64_t client;
  Outcome outcome;
  double weight;
  VisitNumbers numbers;
};

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

// Who plays whom in a round.
struct Shares {
  std::int64_t round = -1;
  std::vector<std::size_t> clients;  // asked, ascending
  std::vector<std::size_t> ranks;    // of the same
  std::vector<VisitLoad> loads;      // of the same

  // Nothing for a client that is not asked.
  std::optional<std::size_t> rank_of(std::size_t client) const {
    const auto found = std::ranges::lower_bound(clients, client);
    if (found == clients.end() || *found != client) return std::nullopt;
    return ranks[std::size_t(found - clients.begin())];
  }
};

class RankExecutor final : public Executor {
 public:
  explicit RankExecutor(RankExecutorParts parts) : parts_(std::move(parts)) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    begin(round, clients);
    // Made before it is needed: the last to come should not be the one who waits for memory.
    HostVector<float> eta(round.global.eta().size()), lambda(round.global.lambda_span().size());
    Collector collector(round);
    parts_.own.play_into(collector, round, own_tasks(clients), [&] { parts_.ranks.progress(); });
    Collector::Part part = std::move(collector).part();
    std::vector<Report> reports = gather_reports(parts_.ranks, part.reports);
    const Grid& grid = round.grid;
    add_over_ranks(parts_.ranks, part.units.eta, grid.bits, grid.eta_exponent, eta.span());
    add_over_ranks(parts_.ranks, part.units.lambda, grid.bits, grid.lambda_exponent, lambda.span());
    if (round.phase.stateful()) parts_.sites.end_bringing();
    return {.total = message_of(part.units.family, std::move(eta), std::move(lambda)),
            .reports = std::move(reports)};
  }

  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (!round.phase.stateful()) return;
    std::vector<std::size_t> mine;
    std::vector<PlacedClient> all;
    for (const std::size_t client : taken) {
      const std::size_t rank = *now_.rank_of(client);
      if (rank == parts_.ranks.rank()) mine.push_back(client);
      all.push_back({parts_.population[client].key, rank});
    }
    settle_visits(round, parts_.population, mine, part, parts_.sites.own());
    parts_.sites.settled(round.round, all);
    if (!all.empty()) keep_mean(round, parts_.sites, parts_.ranks.is_first());
  }

 private:
  // Factors of this round's clients come first. Those of the next round's, whom everybody knows already,
  // come while this round's train.
  void begin(const RoundTask& round, std::span<const ClientTask> clients) {
    std::vector<std::size_t> asked;
    for (const ClientTask& task : clients) asked.push_back(task.client);
    const bool is_planned = next_.round == round.round && next_.clients == asked;
    now_ = is_planned ? std::move(next_) : share(round.round, std::move(asked), {});
    next_ = {};
    if (!round.phase.stateful()) return;
    parts_.sites.bring(placed(now_));
    if (round.round + 1 >= round.phase.end_round()) return;
    next_ = share(round.round + 1,
                  sample_clients(round.seed, round.round + 1, parts_.population.size(),
                                 round.phase.clients_per_round),
                  now_);
    Shares idle = next_;  // whose factors no visit of this round moves
    for (std::size_t i = idle.clients.size(); i-- > 0;) {
      if (!now_.rank_of(idle.clients[i])) continue;
      idle.clients.erase(idle.clients.begin() + std::ptrdiff_t(i));
      idle.ranks.erase(idle.ranks.begin() + std::ptrdiff_t(i));
    }
    parts_.sites.begin_bringing(placed(idle));
  }

  // `before`: of the round before, which is being played.
  Shares share(std::int64_t round, std::vector<std::size_t> clients, const Shares& before) const {
    Shares shares{.round = round, .clients = std::move(clients), .ranks = {}, .loads = {}};
    for (const std::size_t client : shares.clients) {
      const ClientInfo& info = parts_.population[client];
      const std::optional<std::size_t> played = before.rank_of(client);
      shares.loads.push_back({parts_.cost(info), played ? played : parts_.sites.home(info.key)});
    }
    shares.ranks =
        share_out(shares.loads, {.ranks = parts_.ranks.size(), .threads = parts_.threads});
    return shares;
  }

  std::vector<PlacedClient> placed(const Shares& shares) const {
    std::vector<PlacedClient> out;
    for (std::size_t i = 0; i < shares.clients.size(); ++i) {
      out.push_back({parts_.population[shares.clients[i]].key, shares.ranks[i]});
    }
    return out;
  }

  // Threads take visits in this order: the longest must not come last.
  std::vector<ClientTask> own_tasks(std::span<const ClientTask> clients) const {
    std::vector<ClientTask> mine;
    for (const std::size_t i : longest_first(now_.loads)) {
      if (now_.ranks[i] == parts_.ranks.rank()) mine.push_back(clients[i]);
    }
    return mine;
  }

  RankExecutorParts parts_;
  Shares now_, next_;
};

}  // namespace

void add_over_ranks(Ranks& ranks, std::span<std::int64_t> units, int bits, int exponent,
                    std::span<float> out) {
  // A piece is still in the cache when it is scaled, and so are the library's own copies of it.
  constexpr std::size_t kPiece = std::size_t(1) << 18;
  std::vector<std::int32_t> narrow;
  for (std::size_t begin = 0; begin < units.size(); begin += kPiece) {
    const std::span<std::int64_t> piece =
        units.subspan(begin, std::min(kPiece, units.size() - begin));
    if (bits > 32) {
      ranks.sum(piece);
    } else {  // the sum of all clients fits (round/grid.h), so the sums of some do
      narrow.assign(piece.begin(), piece.end());
      ranks.sum(std::span<std::int32_t>(narrow));
      std::ranges::copy(narrow, piece.begin());
    }
    scale_units(piece, exponent, out.subspan(begin, piece.size()));
  }
}

std::unique_ptr<Executor> make_rank_executor(RankExecutorParts parts) {
  return std::make_unique<RankExecutor>(std::move(parts));
}

}  // namespace fedep
