#include "fedep/data/partition_kinds.h"

#include <algorithm>
#include <array>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/table.h"

namespace fedep {
namespace {

// An index file speaks of records; those left out leave their client too.
Partition given(const DataSettings& settings, const PartitionInput& input, const PartitionPlan&) {
  const std::size_t records = input.places.empty() ? input.labels.size() : input.places.size();
  Partition clients = read_partition(input.dataset, input.index_file,
                                     std::size_t(std::max(settings.examples, 0)), records);
  if (input.places.empty()) return clients;
  for (std::vector<std::uint32_t>& examples : clients) {
    for (std::uint32_t& example : examples) example = input.places[example];
    std::erase(examples, kLeftOut);
  }
  return clients;
}

Partition dirichlet(const DataSettings& settings, const PartitionInput& input,
                    const PartitionPlan& plan) {
  return dirichlet_partition(input.labels, settings.concentration, plan);
}

Partition pachinko(const DataSettings& settings, const PartitionInput& input,
                   const PartitionPlan& plan) {
  return pachinko_partition(input.coarse, input.labels, settings.concentration, kPachinkoFine,
                            plan);
}

Partition iid(const DataSettings&, const PartitionInput& input, const PartitionPlan& plan) {
  return iid_partition(input.labels.size(), plan);
}

constexpr std::array kKinds{
    PartitionKind{.name = "given",
                  .summary = "an index file beside the data: int32, client after client",
                  .make = given},
    PartitionKind{.name = "natural",
                  .summary = "the client that the data name: writer, user, hospital"},
    PartitionKind{.name = "dirichlet",
                  .summary = "a Dirichlet law over labels per client",
                  .make = dirichlet},
    PartitionKind{.name = "pachinko",
                  .summary = "Dirichlet laws over coarse labels, then over their fine ones",
                  .make = pachinko,
                  .needs_coarse_labels = true},
    PartitionKind{.name = "iid", .summary = "at random, in equal parts", .make = iid},
};

bool can_make(const PartitionKind& kind, const PartitionInput& input) {
  return !kind.natural() && !(kind.needs_coarse_labels && input.coarse.empty());
}

}  // namespace

std::span<const PartitionKind> partition_kinds() { return kKinds; }

const PartitionKind& find_partition(std::string_view name) {
  return find_row("data.partition", kKinds, name);
}

void check_natural_partition(const DataSettings& settings) {
  if (find_partition(settings.partition).natural()) return;
  throw InputError(fmt::format("data.partition of {} must be natural, but is {}",
                               shown(settings.name), settings.partition));
}

Partition make_partition(const DataSettings& settings, const PartitionInput& input,
                         const PartitionPlan& plan) {
  const PartitionKind& kind = find_partition(settings.partition);
  if (can_make(kind, input)) return kind.make(settings, input, plan);
  std::vector<std::string_view> others;
  for (const PartitionKind& other : kKinds) {
    const bool is_there = other.natural() ? input.names_clients : can_make(other, input);
    if (is_there) others.push_back(other.name);
  }
  throw InputError(fmt::format("data.partition of {} must be {}, but is {}{}", shown(settings.name),
                               alternatives(others), kind.name,
                               kind.natural() ? ": these data name no clients" : ""));
}

}  // namespace fedep
