// The partitions there are, by the names that data.partition may have.
//
//   const Partition parts = make_partition(settings, {.dataset = "idx", .labels = labels}, plan);
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/data/partition.h"

namespace fedep {

// A record of a file that is no example.
inline constexpr std::uint32_t kLeftOut = std::numeric_limits<std::uint32_t>::max();

// Examples to be given out.
struct PartitionInput {
  std::string_view dataset;                   // for errors
  std::span<const std::int32_t> labels;       // of the examples
  std::span<const std::int32_t> coarse = {};  // their coarse labels, where there are any
  std::filesystem::path index_file = {};      // beside the data, for a partition that reads one
  // Place of the file's records among the examples, or kLeftOut; empty: record i is example i.
  std::span<const std::uint32_t> places = {};
  bool names_clients = false;  // data.partition = "natural" is there too, and is not made here
};

struct PartitionKind {
  std::string_view name;
  std::string_view summary;
  // Null: clients are those that the data name.
  Partition (*make)(const DataSettings& settings, const PartitionInput& input,
                    const PartitionPlan& plan) = nullptr;
  bool needs_coarse_labels = false;

  bool natural() const { return make == nullptr; }
};

std::span<const PartitionKind> partition_kinds();
// Throws InputError with the nearest name.
const PartitionKind& find_partition(std::string_view name);
// For data whose clients are what they are: throws InputError unless the partition is natural.
void check_natural_partition(const DataSettings& settings);

// As data.partition says. Throws InputError, naming those that would do, if that needs what the input
// does not have.
Partition make_partition(const DataSettings& settings, const PartitionInput& input,
                         const PartitionPlan& plan);

}  // namespace fedep
