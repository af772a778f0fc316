// What algorithm/fed_pa.h asks of a storage, for samples on the GPU: one kernel for all scalar
// products of a client's samples, and one for their weighted sum; more than gpu::kMostSamples are
// taken two by two. To be included wherever posterior_delta() is called for a DeviceVector.
#pragma once

#include <span>
#include <vector>

#include "fedep/cuda/device/device_vector.h"

namespace fedep {

std::vector<double> products_of_moves(std::span<const DeviceVector> samples,
                                      const DeviceVector& initial);
DeviceVector sum_of_moves(std::span<const DeviceVector> samples, const DeviceVector& initial,
                          std::span<const double> weights);

}  // namespace fedep
