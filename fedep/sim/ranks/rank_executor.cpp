#include "fedep/sim/ranks/rank_executor.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "fedep/round/grid_pieces.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/round_parts.h"

namespace fedep {
namespace {

class RankExecutor final : public Executor {
 public:
  RankExecutor(SharingParts parts, CollectingExecutor& own)
      : shares_(std::move(parts)), own_(own) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    Ranks& ranks = shares_.ranks();
    shares_.begin(round.seed, round.round, round.phase, clients);
    // Made before it is needed: the last to come should not be the one who waits for memory.
    HostVector<float> eta(round.global.eta().size()), lambda(round.global.lambda_span().size());
    Collector collector(round);
    // Threads take visits in this order: the longest must not come last.
    own_.play_into(collector, round, shares_.own_longest_first(clients), [&] { ranks.progress(); });
    Collector::Part part = std::move(collector).part();
    std::vector<Report> reports = gather_reports(ranks, part.reports);
    const Grid& grid = round.grid;
    add_over_ranks(ranks, part.units.eta, grid.bits, grid.eta_exponent, eta.span());
    add_over_ranks(ranks, part.units.lambda, grid.bits, grid.lambda_exponent, lambda.span());
    shares_.end(round.phase);
    return {.total = message_of(part.units.family, std::move(eta), std::move(lambda)),
            .reports = std::move(reports)};
  }

  void settle(const RoundTask& round, std::span<const std::size_t> taken,
              const StepPart& part) override {
    if (!round.phase.stateful()) return;
    settle_visits(round, shares_.population(), shares_.own_of(taken), part, shares_.sites().own());
    shares_.settled(round.round, taken);
    if (!taken.empty()) keep_mean(round, shares_.sites(), shares_.ranks().is_first());
  }

 private:
  RoundShares shares_;
  CollectingExecutor& own_;
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

std::unique_ptr<Executor> make_rank_executor(SharingParts parts, CollectingExecutor& own) {
  return std::make_unique<RankExecutor>(std::move(parts), own);
}

}  // namespace fedep
