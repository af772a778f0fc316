// A data set cut into a file per client (shard.h), and put together again.
//
//   write_shards(*data, seed, "shards");             // 000000-<client>.shard, …, manifest.json
//   open_shards({.name = "shards", .path = "shards"}, seed, data_folder);
//
// Held-out examples lie with the training examples of their client; test clients that do not train
// have files of their own. manifest.json says in which order clients come, and each file's counts,
// size and checksum: what is put together is the data set that was cut, bit by bit. One file alone
// is a data set of one client.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

struct ShardTotals {
  std::size_t files = 0;
  std::size_t train = 0;  // examples
  std::size_t test = 0;
  std::uint64_t bytes = 0;
};

// `seed` is noted in the manifest: partitions may have been drawn with it. Throws InputError if the
// folder has something in it, RunError if it cannot be written. The manifest comes last, so that a
// folder without one is an import that did not finish.
ShardTotals write_shards(const Dataset& data, std::uint64_t seed,
                         const std::filesystem::path& folder);

// Reads folder / settings.path: a folder with a manifest, or one file. Throws InputError, naming
// the file, for whatever is missing, damaged, of another version or of another data set.
std::unique_ptr<Dataset> open_shards(const DataSettings& settings, std::uint64_t seed,
                                     const std::filesystem::path& folder);

}  // namespace fedep
