// intercepts/ in a run directory: a file for every client with what it alone knows of its own intercept
// (own_intercept.h), bound to the checkpoint at whose mean it was found. In a federation each stays with its
// client; nothing of it is sent.
//
//   write_own_intercepts(run, own, round, seal_of(checkpoint));
//   const OwnIntercepts own = read_own_intercepts(run, seal_of(checkpoint), columns);
//
// Tensors of <key>.safetensors, the key being the client's (random/stream.h): precision and pull [1], coupling [columns], F64. Metadata:
// format, version, client, round, checkpoint (a hash of that file), and a checksum per tensor.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>

#include "fedep/sim/rows/own_intercept.h"

namespace fedep {

std::filesystem::path intercepts_path(const std::filesystem::path& run);

// Replaces files atomically, one by one.
void write_own_intercepts(const std::filesystem::path& run, const OwnIntercepts& own,
                          std::int64_t round, std::uint64_t seal);

// Those of this checkpoint; files of an earlier one are left out. `columns`: without the intercept's. Throws InputError, naming it, for a
// file that is damaged, without checksums, of another kind or of other columns.
OwnIntercepts read_own_intercepts(const std::filesystem::path& run, std::uint64_t seal,
                                  std::size_t columns);

}  // namespace fedep
