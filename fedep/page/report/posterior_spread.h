// How sure a posterior is, layer by layer: histograms of its standard deviations 1/sqrt(lambda).
//
//   const auto spread = posterior_spread(read_safetensors("run/checkpoint-100.safetensors"));
//   spread->layers[0].counts;      // weights in each of the bins between spread->edges
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "fedep/store/safetensors/safetensors.h"

namespace fedep {

inline constexpr std::size_t kSpreadBins = 40;

struct LayerSpread {
  std::string name;
  std::int64_t weights = 0;
  std::int64_t improper = 0;  // precision not positive: no standard deviation
  double low = 0;             // of those that have one: smallest, median, largest; NaN if none has
  double median = 0;
  double high = 0;
  std::vector<std::int64_t> counts;
};

struct PosteriorSpread {
  std::int64_t round = 0;    // completed rounds
  std::int64_t weights = 0;  // of the whole model
  bool isotropic = false;    // one precision for all weights: `deviation`, and no layers
  double deviation = 0;      // NaN if improper
  // Bins of equal width in the logarithm, the same for all layers; the last one's upper edge
  // belongs to it. Empty where no weight has a standard deviation.
  std::vector<double> edges;
  std::vector<LayerSpread> layers;
  // For whoever knows them: why none of this is to be shown, and what else to say of it.
  std::string withheld = {};
  std::string note = {};

  // Weights without a standard deviation.
  std::int64_t improper() const;
};

// Throws InputError for a file that is no checkpoint.
PosteriorSpread posterior_spread(const SafetensorsFile& checkpoint);

}  // namespace fedep
