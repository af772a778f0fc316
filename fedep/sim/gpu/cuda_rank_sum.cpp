#include "fedep/sim/gpu/cuda_rank_sum.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>

namespace fedep {

void CudaRankSum::make_room(std::size_t bytes) {
  if (bytes <= bytes_) return;
  pinned_free(std::exchange(pinned_, nullptr));
  bytes_ = 0;
  pinned_ = pinned_allocate(bytes);
  bytes_ = bytes;
}

template <class T>
DeviceVector CudaRankSum::numbers(DeviceArray<T>& units, int exponent) {
  const std::size_t size = units.size();
  make_room(size * sizeof(T));
  const std::span<T> here(static_cast<T*>(pinned_), size);
  const auto piece_at = [&](std::size_t begin) {
    return here.subspan(begin, std::min(kPiece, size - begin));
  };
  const auto bring = [&](std::size_t begin) {
    if (begin >= size) return;
    down_.copy(piece_at(begin).data(), units.data() + begin, piece_at(begin).size_bytes());
  };
  down_.follow_main();
  up_.follow_main();
  bring(0);
  for (std::size_t begin = 0; begin < size; begin += kPiece) {
    const std::span<T> piece = piece_at(begin);
    down_.wait();
    bring(begin + kPiece);
    ranks_.sum(piece);
    up_.copy(units.data() + begin, piece.data(), piece.size_bytes());
  }
  up_.main_follows();
  DeviceVector out(size);
  gpu::numbers_of_units(units.data(), size, std::ldexp(1.0, exponent), out.data(), device_stream());
  up_.wait();  // `here` is the next array's then
  return out;
}

DeviceVector CudaRankSum::numbers(UnitArray& units, int exponent) {
  return units.wide.size() > 0 ? numbers(units.wide, exponent) : numbers(units.narrow, exponent);
}

DeviceMessage CudaRankSum::total(DeltaUnits own, const Grid& grid) {
  DeviceVector eta = numbers(own.eta, grid.eta_exponent);
  if (own.lambda.wide.size() + own.lambda.narrow.size() > 0) {
    return {std::move(eta), numbers(own.lambda, grid.lambda_exponent)};
  }
  ranks_.sum(std::span(&own.lambda_number, 1));
  return {std::move(eta), number_of_units(own.lambda_number, grid.lambda_exponent)};
}

}  // namespace fedep
