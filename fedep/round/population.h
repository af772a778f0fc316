// Who takes part: every client's id and how many examples it has. Nothing else about them is known
// to the server.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace fedep {

struct ClientInfo {
  std::string id;
  std::uint64_t key =
      0;  // client_key(id): the client's address in all randomness and its name in stores
  std::size_t examples = 0;
};

// Position in this list is a client's index in tasks and reports of one run.
class Population {
 public:
  // Throws InputError if there is no client, or more than 2^32, an id is empty or stands twice.
  explicit Population(std::vector<ClientInfo> clients);

  std::size_t size() const { return clients_.size(); }
  const ClientInfo& operator[](std::size_t client) const { return clients_[client]; }
  std::size_t examples() const { return examples_; }  // N, over all clients
  // The place of the client with this key. Throws InputError if there is none.
  std::size_t find(std::uint64_t key) const;

 private:
  std::vector<ClientInfo> clients_;
  std::vector<std::uint32_t> by_key_;  // places, in the order of keys: 4 bytes a client
  std::size_t examples_ = 0;
};

// {"a", 10}, {"b", 20} with their keys filled in.
Population make_population(const std::vector<std::pair<std::string, std::size_t>>& ids);

}  // namespace fedep
