// A round's clients shared out among ranks: each plays its own, deltas are added up as integers, and
// every rank ends with the same sum and the same reports.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "fedep/round/collector.h"
#include "fedep/sim/ranks/round_shares.h"

namespace fedep {

// `own` plays this rank's clients, on sites.own(); it must outlive the result.
std::unique_ptr<Executor> make_rank_executor(SharingParts parts, CollectingExecutor& own);

// The ranks' sums of one array of a round added up, on a grid of so many bits, times 2^exponent.
// `units` has the sum then, `out` as many numbers.
void add_over_ranks(Ranks& ranks, std::span<std::int64_t> units, int bits, int exponent,
                    std::span<float> out);

}  // namespace fedep
