// Clients one after another in the calling thread: the specification of an executor.
#pragma once

#include <memory>

#include "fedep/round/collector.h"
#include "fedep/round/host_rows.h"
#include "fedep/round/population.h"

namespace fedep {

// `sites` may be null if no phase is stateful. Everything given must outlive the executor.
std::unique_ptr<CollectingExecutor> make_serial(const Population& population,
                                                LocalInference& inference, SiteStore* sites);

}  // namespace fedep
