// Linear regression with known unit noise, built in: with a Gaussian prior every posterior, tilted
// or not, is exactly Gaussian, so methods can be checked against the answer.
//
//   w ~ N(0, I) is everyone's;  client k: x ~ s_k N(0, I),  y = x·w + N(0, 1)
//
// s_k is lognormal(σ = 0.3), sizes are uniform in [data.examples/2, 3 data.examples/2]. The last
// data.test_fraction of a client's examples is its test set. Addressed by (seed, client).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

std::unique_ptr<Dataset> open_regression(const DataSettings& settings, std::uint64_t seed,
                                         const std::filesystem::path& folder = {});

// The true w.
std::vector<double> regression_weights(const DataSettings& settings, std::uint64_t seed);

}  // namespace fedep
