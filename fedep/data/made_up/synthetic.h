// synthetic(alpha, beta): the built-in classification task, which needs no file (Li+20, "Federated
// optimization in heterogeneous networks", Sec. 5.1). Client k has a softmax model of its own:
//
//   u_k ~ N(0, alpha²)   W_k[i,j], b_k[i] ~ N(u_k, 1)   10 classes, data.dimension features (60)
//   B_k ~ N(0, beta²)    v_k[j] ~ N(B_k, 1)
//   x ~ N(v_k, diag(j^-1.2)),  j = 1..60        y = argmax softmax(W_k x + b_k)
//
// alpha and beta are standard deviations, as in the authors' code. Theirs has lognormal(4, 2) + 50
// examples a client, 453 on average with a tail of tens of thousands; here the average is
// data.examples, half of it certain and half lognormal(σ = 1), ten times it at most. The last
// data.test_fraction of a client's examples is its test set.
//
// Numbers are addressed by (seed, client): more clients do not change the first ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

inline constexpr std::size_t kSyntheticClasses = 10;

std::unique_ptr<Dataset> open_synthetic(const DataSettings& settings, std::uint64_t seed,
                                        const std::filesystem::path& folder = {});

}  // namespace fedep
