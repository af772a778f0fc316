// Who gets which examples of a data set that does not say so itself. Every example goes to at most
// one client.
//
//   const PartitionPlan plan{.clients = 500, .seed = 1};
//   const Partition parts = dirichlet_partition(labels, 0.1, plan);
//   parts[7];   // places of client 7's examples in `labels`
//
// Draws are addressed by (seed, part, client): the same plan gives the same partition everywhere.
// Clients' sizes differ by one example at most, and all examples are given out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"

namespace fedep {

using Partition = std::vector<std::vector<std::uint32_t>>;

struct PartitionPlan {
  std::size_t clients = 1;
  std::uint64_t seed = 1;
  std::uint32_t part = 0;  // 0 train, 1 test: their draws have nothing to do with each other
};

Partition iid_partition(std::size_t examples, const PartitionPlan& plan);

// Each client has a law over labels, drawn from Dirichlet(concentration * classes * frequency of
// the label): symmetric if labels are equally frequent, and with a large concentration every client
// is like the whole (Hsu+19, whose alpha is concentration * classes). A label that has run out
// leaves the law, which is renormalised.
Partition dirichlet_partition(std::span<const std::int32_t> labels, double concentration,
                              const PartitionPlan& plan);

// Pachinko allocation (TFF's CIFAR-100): per client a Dirichlet(coarse_concentration) law over
// coarse labels and, for each, a Dirichlet(fine_concentration) law over its fine labels; an example
// is drawn coarse label first, then fine label, then without replacement. Fine labels that have run
// out leave their law, which is renormalised; so does a coarse label whose fine ones are all gone.
inline constexpr double kPachinkoFine = 10.0;
Partition pachinko_partition(std::span<const std::int32_t> coarse,
                             std::span<const std::int32_t> fine, double coarse_concentration,
                             double fine_concentration, const PartitionPlan& plan);

// An index file: little-endian int32, client after client, `per_client` each. Throws InputError if
// it has a piece of a client, a place outside [0, examples) or one twice.
Partition read_partition(std::string_view dataset, const std::filesystem::path& path,
                         std::size_t per_client, std::size_t examples);

// Leaves out clients with fewer than min_examples (or none), and examples beyond max_examples
// (0: no bound). Returns the places in the old partition of the clients that stay.
std::vector<std::size_t> limit_clients(Partition& partition, const DataSettings& settings);

// Throws InputError if min_examples left no client of the data set.
void check_clients_left(std::string_view dataset, std::size_t clients,
                        const DataSettings& settings);

// As many test clients as give each about as many examples as a training client has.
std::size_t test_client_count(std::size_t clients, std::size_t train, std::size_t test);

}  // namespace fedep
