#include "fedep/sim/ranks/rank_executor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fedep/round/host_rows.h"
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

class RankExecutor final : public Executor {
 public:
  explicit RankExecutor(RankExecutorParts parts) : parts_(std::move(parts)) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    share(clients);
    if (round.phase.stateful()) parts_.sites.bring(placed_);
    Collector collector(round);
    parts_.own.play_into(collector, round, mine_);
    Collector::Part part = std::move(collector).part();
    std::vector<Report> reports = gather_reports(parts_.ranks, part.reports);
    add_over_ranks(parts_.ranks, part.units.eta, round.grid.bits);
    add_over_ranks(parts_.ranks, part.units.lambda, round.grid.bits);
    return {.total = from_grid(round.grid, part.units), .reports = std::move(reports)};
  }

  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (!round.phase.stateful()) return;
    std::vector<std::size_t> mine;
    std::vector<PlacedClient> all;
    for (const std::size_t client : taken) {
      const std::size_t rank = rank_of(client);
      if (rank == parts_.ranks.rank()) mine.push_back(client);
      all.push_back({parts_.population[client].key, rank});
    }
    settle_visits(round, parts_.population, mine, part, parts_.sites.own());
    parts_.sites.settled(round.round, all);
  }

 private:
  void share(std::span<const ClientTask> clients) {
    std::vector<VisitLoad> loads;
    for (const ClientTask& task : clients) {
      const ClientInfo& info = parts_.population[task.client];
      loads.push_back({parts_.cost(info), parts_.sites.home(info.key)});
    }
    const std::vector<std::size_t> ranks =
        share_out(loads, {.ranks = parts_.ranks.size(), .threads = parts_.threads});
    placed_.clear();
    asked_.clear();
    mine_.clear();
    for (std::size_t i = 0; i < clients.size(); ++i) {
      placed_.push_back({parts_.population[clients[i].client].key, ranks[i]});
      asked_.push_back(clients[i].client);
    }
    // Threads take visits in this order: the longest must not come last.
    for (const std::size_t i : longest_first(loads)) {
      if (ranks[i] == parts_.ranks.rank()) mine_.push_back(clients[i]);
    }
  }

  // Of a client asked in this round; those are ascending.
  std::size_t rank_of(std::size_t client) const {
    const auto found = std::ranges::lower_bound(asked_, client);
    return placed_[std::size_t(found - asked_.begin())].rank;
  }

  RankExecutorParts parts_;
  std::vector<std::size_t> asked_;    // in this round
  std::vector<PlacedClient> placed_;  // the same
  std::vector<ClientTask> mine_;
};

}  // namespace

void add_over_ranks(Ranks& ranks, std::vector<std::int64_t>& units, int bits) {
  if (units.empty()) return;
  if (bits > 32) {
    ranks.sum(units);
    return;
  }
  // The sum of all clients fits (round/grid.h), so the sums of some do.
  std::vector<std::int32_t> narrow(units.begin(), units.end());
  ranks.sum(narrow);
  units.assign(narrow.begin(), narrow.end());
}

std::unique_ptr<Executor> make_rank_executor(RankExecutorParts parts) {
  return std::make_unique<RankExecutor>(std::move(parts));
}

}  // namespace fedep
