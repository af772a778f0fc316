// A round's clients shared out among ranks: each plays its own, deltas are added up as integers, and
// every rank ends with the same sum and the same reports.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "fedep/round/collector.h"
#include "fedep/round/population.h"
#include "fedep/sim/ranks/rank_sites.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

struct RankExecutorParts {
  const Population& population;
  Ranks& ranks;
  RankSites& sites;
  CollectingExecutor& own;  // plays this rank's clients, on sites.own()
  std::size_t threads = 1;  // of every rank
  // What a visit costs, in steps; the same on every rank.
  std::function<std::int64_t(const ClientInfo&)> cost;
};

std::unique_ptr<Executor> make_rank_executor(RankExecutorParts parts);

// The ranks' sums of one array of a round added up, on a grid of so many bits, times 2^exponent.
// `units` has the sum then, `out` as many numbers.
void add_over_ranks(Ranks& ranks, std::span<std::int64_t> units, int bits, int exponent,
                    std::span<float> out);

}  // namespace fedep
