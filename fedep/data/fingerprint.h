// A hash of all that a run can see of a data set: shapes, clients, training and held-out examples.
// Equal data have equal fingerprints, wherever they were read from.
//
//   if (fingerprint(*data) != expected) …
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "fedep/data/dataset.h"

namespace fedep {

std::uint64_t fingerprint(const Dataset& data);
// Of bytes, such as a file's.
std::uint64_t fingerprint(std::span<const std::byte> bytes);

}  // namespace fedep
