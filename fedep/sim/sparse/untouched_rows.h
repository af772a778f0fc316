// The rows of W that no batch has touched. They made all of a chain's steps, none of them down a
// gradient, from where they began without momentum: so nothing is kept of them, and what has become
// of them is computed when somebody asks. Where λ is one number, one coefficient says it of all.
//
//   const UntouchedRows untouched(law, maps.exact(), start, {RowPart::mean, steps});
//   untouched.read(first_row * width, to);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/sim/sparse/row_store.h"

namespace fedep {

// With r = λ θ_0 - η, an untouched row's iterate, average and mean are θ_0 - c r, and its variance is
// c r². This is c; isotropic only.
double untouched_coefficient(const RowLaw& law, std::span<const FreeMap> maps,
                             const RowQuery& query);

class UntouchedRows {
 public:
  // `maps`: those of `law` before they were rounded, isotropic only.
  UntouchedRows(const RowLaw& law, std::span<const FreeMap> maps, const RowsStart& start,
                const RowQuery& query);

  // What is asked of the coordinates from `begin` on, of any number of rows.
  void read(std::size_t begin, std::span<float> to) const;

 private:
  void read_by_coefficient(std::size_t begin, std::span<float> to) const;
  void read_after_the_way(std::size_t begin, std::span<float> to) const;

  RowLaw law_;
  RowsStart start_;
  RowQuery query_;
  float coefficient_ = 0;         // isotropic only
  std::vector<FreeStretch> way_;  // otherwise
};

}  // namespace fedep
