// A round's clients shared out among ranks of which each has a GPU (or a part of one): what
// sim/ranks/rank_executor is for cores.
#pragma once

#include <memory>

#include "fedep/cuda/round/device_sites.h"
#include "fedep/sim/gpu/cuda_rows.h"
#include "fedep/sim/ranks/round_shares.h"

namespace fedep {

// `sites`: those of this rank, which parts.sites has as its own. Everything given must outlive the
// result.
std::unique_ptr<ExecutorOf<DeviceVector>> make_cuda_rank_executor(SharingParts parts,
                                                                  CudaInference& inference,
                                                                  DeviceSites& sites);

}  // namespace fedep
