#include "fedep/round/population.h"

#include <unordered_set>
#include <utility>

#include "fedep/message/check.h"
#include "fedep/random/stream.h"

namespace fedep {

Population::Population(std::vector<ClientInfo> clients) : clients_(std::move(clients)) {
  check_positive("Population", "number of clients", double(clients_.size()));
  std::unordered_set<std::uint64_t> keys;
  for (const ClientInfo& client : clients_) {
    if (client.id.empty()) throw InputError("Population: a client's id must not be empty");
    if (!keys.insert(client.key).second) {
      throw InputError(
          fmt::format("Population: client id {} must stand once, but stands twice", client.id));
    }
    examples_ += client.examples;
  }
}

Population make_population(const std::vector<std::pair<std::string, std::size_t>>& ids) {
  std::vector<ClientInfo> clients;
  for (const auto& [id, examples] : ids) clients.push_back({id, client_key(id), examples});
  return Population(std::move(clients));
}

}  // namespace fedep
