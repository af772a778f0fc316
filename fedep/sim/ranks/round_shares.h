// Who plays whom of a round's clients, and what ranks tell each other of it: the part of a round over
// ranks that does not care which memory messages live in.
//
//   shares.begin(round.seed, round.round, round.phase, clients);   // factors come to where they are needed
//   … this rank plays shares.own(clients), sums are added up …
//   const std::vector<Report> all = gather_reports(ranks, mine);
//   shares.end(round.phase);                                       // factors of the next round are there
//   … settle those of `taken` that shares.own_of(taken) names …
//   shares.settled(round.round, taken);
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "fedep/round/executor.h"
#include "fedep/round/population.h"
#include "fedep/sim/ranks/rank_sites.h"
#include "fedep/sim/ranks/ranks.h"
#include "fedep/sim/ranks/share_out.h"

namespace fedep {

// What is referred to must outlive who is given it.
struct SharingParts {
  const Population& population;
  Ranks& ranks;
  RankSites& sites;
  std::size_t threads = 1;  // of every rank
  // What a visit costs, in steps; the same on every rank.
  std::function<std::int64_t(const ClientInfo&)> cost;
};

// Steps of an SGD visit, and what it costs without them.
std::int64_t visit_cost(const ClientSettings& settings, const ClientInfo& client);

class RoundShares {
 public:
  explicit RoundShares(SharingParts parts) : parts_(std::move(parts)) {}

  // All ranks together. Factors of this round's clients come first. Those of the next round's, whom
  // everybody knows already, come while this round's train.
  void begin(std::uint64_t seed, std::int64_t round, const Phase& phase,
             std::span<const ClientTask> clients);
  void end(const Phase& phase);

  // Of the round's clients those that this rank plays, in their order; and the longest first.
  std::vector<ClientTask> own(std::span<const ClientTask> clients) const;
  std::vector<ClientTask> own_longest_first(std::span<const ClientTask> clients) const;
  std::vector<std::size_t> own_of(std::span<const std::size_t> taken) const;
  // These clients' proposals have become their states, each on its rank.
  void settled(std::int64_t round, std::span<const std::size_t> taken);

  Ranks& ranks() const { return parts_.ranks; }
  RankSites& sites() const { return parts_.sites; }
  const Population& population() const { return parts_.population; }

 private:
  struct Shares {
    std::int64_t round = -1;
    std::vector<std::size_t> clients;  // asked, ascending
    std::vector<std::size_t> ranks;    // of the same
    std::vector<VisitLoad> loads;      // of the same

    // Nothing for a client that is not asked.
    std::optional<std::size_t> rank_of(std::size_t client) const;
  };

  // `before`: of the round before, which is being played.
  Shares share(std::int64_t round, std::vector<std::size_t> clients, const Shares& before) const;
  std::vector<PlacedClient> placed(const Shares& shares) const;

  SharingParts parts_;
  Shares now_, next_;
};

// Every rank's reports, without their deltas, to all of them.
std::vector<Report> gather_reports(Ranks& ranks, const std::vector<Report>& mine);

// Throws RunError, on every rank, where ranks have not come to the same state, by its hash: a fault of
// memory, of a processor, or of this program.
void check_same_hash(Ranks& ranks, std::int64_t round, std::uint64_t hash);

}  // namespace fedep
