#include "fedep/sim/sparse/step_maps.h"

namespace fedep {

RowMap::RowMap(const FreeMap& map)
    : by_r(float(map.by_r)),
      by_m(float(map.by_m)),
      m_by_r(float(map.m_by_r)),
      m_by_m(float(map.m_by_m)),
      sum_by_r(float(map.sum_by_r)),
      sum_by_m(float(map.sum_by_m)) {}

StepMaps::StepMaps(const SgdNumbers& numbers, float lambda)
    : numbers_(numbers), lambda_(double(lambda)) {}

void StepMaps::reach(std::size_t steps) {
  for (std::size_t k = exact_.size() - 1; k < steps; ++k) {
    exact_.push_back(next(exact_[k], numbers_, lambda_));
    without_gradient_.emplace_back(exact_[k + 1]);
    after_gradient_.push_back(with_gradient(exact_[k], exact_[k + 1], k, numbers_, lambda_));
  }
}

}  // namespace fedep
