// model/resnet18.h for a whole cohort; what its rows in registry.cpp hold.
#pragma once

#include <memory>

#include "fedep/cuda/network/cohort_model.h"

namespace fedep {

std::unique_ptr<CohortModel> make_cohort_resnet18(const ModelSettings& settings,
                                                  const DatasetInfo& data,
                                                  const CohortCapacity& capacity);
std::unique_ptr<CohortModel> make_cohort_resnet_small(const ModelSettings& settings,
                                                      const DatasetInfo& data,
                                                      const CohortCapacity& capacity);

}  // namespace fedep
