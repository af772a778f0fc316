// Some of a data set's clients, drawn once: what few hospitals have of a task that others have whole.
//
//   const auto data = kept_clients(open(…), 25, seed);   // 25 of its clients, another seed: 25 others
//
// Whether a client is kept depends on its id, on the seed and on the other clients' ids, so that fewer are
// some of more. The test set, and what was made of all training examples before (vocabularies, scales,
// PCA), stay as they are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "fedep/data/dataset.h"

namespace fedep {

// Throws InputError if there are fewer clients than `count`.
std::unique_ptr<Dataset> kept_clients(std::unique_ptr<Dataset> data, std::size_t count,
                                      std::uint64_t seed);

}  // namespace fedep
