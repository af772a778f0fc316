// The list that comes with shards: manifest.json, which says what each file holds and in which
// order clients come.
//
//   write_manifest("shards", manifest);
//   const ShardManifest manifest = read_manifest("shards");
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace fedep {

struct ShardEntry {
  std::string file = {};
  std::string client = {};
  std::size_t train = 0;  // examples
  std::size_t test = 0;
  std::uint64_t bytes = 0;
  std::uint64_t checksum = 0;  // XXH3 of the file

  bool operator==(const ShardEntry&) const = default;
};

struct ShardManifest {
  std::string data = {};                     // name of the data set that was cut
  std::uint64_t seed = 0;                    // that partitions may have been drawn with
  std::uint64_t fingerprint = 0;             // of that data set
  std::vector<ShardEntry> shards = {};       // those that train first, in their order
  std::vector<std::size_t> test_order = {};  // test clients in their order, as places in shards

  bool operator==(const ShardManifest&) const = default;
};

// Appears whole or not at all. Throws RunError if it cannot be written.
void write_manifest(const std::filesystem::path& folder, const ShardManifest& manifest);
// Throws InputError if there is none in the folder, or if it is not one.
ShardManifest read_manifest(const std::filesystem::path& folder);

}  // namespace fedep
