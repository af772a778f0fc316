#include "fedep/round/population.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/random/stream.h"

namespace fedep {

Population::Population(std::vector<ClientInfo> clients) : clients_(std::move(clients)) {
  check_positive("Population", "number of clients", double(clients_.size()));
  check_in("Population", "number of clients", double(clients_.size()), 1,
           double(std::numeric_limits<std::uint32_t>::max()));
  for (const ClientInfo& client : clients_) {
    if (client.id.empty()) throw InputError("Population: a client's id must not be empty");
    examples_ += client.examples;
  }
  const auto key_of = [this](std::uint32_t place) { return clients_[place].key; };
  by_key_.resize(clients_.size());
  std::iota(by_key_.begin(), by_key_.end(), 0u);
  std::ranges::sort(by_key_, {}, key_of);
  const auto twice = std::ranges::adjacent_find(by_key_, {}, key_of);
  if (twice != by_key_.end()) {
    throw InputError(fmt::format("Population: client id {} must stand once, but stands twice",
                                 clients_[*twice].id));
  }
}

std::size_t Population::find(std::uint64_t key) const {
  const auto key_of = [this](std::uint32_t place) { return clients_[place].key; };
  const auto found = std::ranges::lower_bound(by_key_, key, {}, key_of);
  if (found == by_key_.end() || key_of(*found) != key) {
    throw InputError(fmt::format("Population: client {:016x} must be in it, but is not", key));
  }
  return *found;
}

Population make_population(const std::vector<std::pair<std::string, std::size_t>>& ids) {
  std::vector<ClientInfo> clients;
  clients.reserve(ids.size());
  for (const auto& [id, examples] : ids) clients.push_back({id, client_key(id), examples});
  return Population(std::move(clients));
}

}  // namespace fedep
