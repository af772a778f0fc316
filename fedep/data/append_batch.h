// Batches put together from pieces.
#pragma once

#include <cstddef>

#include "fedep/data/batch.h"

namespace fedep {

// Rows [begin, end) of a batch whose dense examples have so many features.
Batch rows_of(const Batch& batch, std::size_t begin, std::size_t end, std::size_t features);

// Puts `from` behind `to`. Both have the same parts, or `to` is empty.
void append(const Batch& from, Batch& to);

}  // namespace fedep
