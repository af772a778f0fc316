// Clients in parallel on worker threads, each client on one of them. Bit for bit what serial gives:
// visits do not see each other, and sums are sums of integers.
#pragma once

#include <functional>
#include <memory>

#include "fedep/round/collector.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/population.h"

namespace fedep {

// One LocalInference per worker is made at once by `make_inference`, so that none is shared.
std::unique_ptr<CollectingExecutor> make_threads(
    const Population& population,
    const std::function<std::unique_ptr<LocalInference>()>& make_inference, SiteStore* sites,
    std::size_t workers);

}  // namespace fedep
