// model/cnn.h for a whole cohort; what its row in registry.cpp holds.
#pragma once

#include <memory>

#include "fedep/cuda/network/cohort_model.h"

namespace fedep {

std::unique_ptr<CohortModel> make_cohort_cnn(const ModelSettings& settings, const DatasetInfo& data,
                                             const CohortCapacity& capacity);

}  // namespace fedep
