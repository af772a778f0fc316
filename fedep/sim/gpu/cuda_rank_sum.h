// The ranks' integer sums of a round's deltas added up, from GPU memory to GPU memory: as
// sim/ranks/rank_executor's add_over_ranks, in pieces through page-locked main memory. While one piece
// is added up the next one comes from the GPU, and the one before goes back.
//
//   CudaRankSum sum(ranks);
//   const DeviceMessage total = sum.total(units, grid);   // on all ranks the same
#pragma once

#include <cstddef>
#include <span>

#include "fedep/cuda/device/device_vector.h"
#include "fedep/cuda/device/side_stream.h"
#include "fedep/cuda/round/round_deltas.h"
#include "fedep/round/grid.h"
#include "fedep/sim/ranks/ranks.h"

namespace fedep {

class CudaRankSum {
 public:
  // Numbers of a piece, which MPI adds at once.
  static constexpr std::size_t kPiece = std::size_t(1) << 20;

  explicit CudaRankSum(Ranks& ranks) : ranks_(ranks) {}
  ~CudaRankSum() { pinned_free(pinned_); }
  CudaRankSum(const CudaRankSum&) = delete;
  CudaRankSum& operator=(const CudaRankSum&) = delete;

  DeviceMessage total(DeltaUnits own, const Grid& grid);

 private:
  DeviceVector numbers(UnitArray& units, int exponent);
  template <class T>
  DeviceVector numbers(DeviceArray<T>& units, int exponent);
  void make_room(std::size_t bytes);

  Ranks& ranks_;
  void* pinned_ = nullptr;  // for a whole array: no piece waits for another one's place
  std::size_t bytes_ = 0;
  SideStream down_, up_;
};

}  // namespace fedep
