// The exact sum of a round's deltas. Memory is O(d) however many clients report.
//
//   Aggregate sum(grid, d, Family::diagonal);
//   sum.add(report.delta);  …             // in any order
//   sum.merge(other_workers_sum);         // in any grouping
//   const Message total = std::move(sum).total();
#pragma once

#include <cstddef>
#include <utility>

#include "fedep/round/grid.h"

namespace fedep {

class Aggregate {
 public:
  Aggregate(const Grid& grid, std::size_t size, Family family);

  // Throws InputError for a delta of another shape, or one with a unit beyond grid.limit (a client
  // that lies).
  void add(const GridDelta& delta);
  void merge(const Aggregate& other);

  std::size_t deltas() const { return deltas_; }
  const GridDelta& units() const { return sum_; }
  GridDelta take_units() && { return std::move(sum_); }
  Message total() const { return from_grid(grid_, sum_); }

 private:
  void check_shape(const GridDelta& delta) const;

  Grid grid_;
  GridDelta sum_;
  std::size_t deltas_ = 0;
};

}  // namespace fedep
