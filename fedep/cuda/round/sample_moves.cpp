#include "fedep/cuda/round/sample_moves.h"

#include "fedep/algorithm/fed_pa.h"
#include "fedep/cuda/round/sample_kernels.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

gpu::Moves moves_of(const char* name, std::span<const DeviceVector> samples,
                    const DeviceVector& initial) {
  gpu::Moves moves;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    check_same_size(name, "a sample", initial.size(), samples[i].size());
    moves.sample[i] = samples[i].data();
  }
  moves.initial = initial.data();
  moves.count = int(samples.size());
  moves.size = initial.size();
  return moves;
}

}  // namespace

std::vector<double> products_of_moves(std::span<const DeviceVector> samples,
                                      const DeviceVector& initial) {
  if (samples.size() > gpu::kMostSamples) return products_of_moves<DeviceVector>(samples, initial);
  const gpu::Moves moves = moves_of("products_of_moves", samples, initial);
  DeviceArray<std::byte> scratch(gpu::product_scratch(moves.count));
  DeviceArray<double> products(samples.size() * samples.size());
  gpu::products_of_moves(moves, scratch.data(), products.data(), device_stream());
  return products.download();
}

DeviceVector sum_of_moves(std::span<const DeviceVector> samples, const DeviceVector& initial,
                          std::span<const double> weights) {
  if (samples.size() > gpu::kMostSamples) {
    return sum_of_moves<DeviceVector>(samples, initial, weights);
  }
  const gpu::Moves moves = moves_of("sum_of_moves", samples, initial);
  check_same_size("sum_of_moves", "weights", samples.size(), weights.size());
  gpu::MoveWeights there;
  for (std::size_t i = 0; i < weights.size(); ++i) there.weight[i] = float(weights[i]);
  DeviceVector sum(initial.size());
  gpu::sum_of_moves(moves, there, sum.data(), device_stream());
  return sum;
}

}  // namespace fedep
