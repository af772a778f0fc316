#include "app/run/client_list.h"

#include <system_error>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/parse_json.h"
#include "fedep/message/read_file.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

constexpr const char* kFormat = "fedep.clients";

}  // namespace

std::string clients_json(const Population& population) {
  Json clients = Json::array();
  for (std::size_t k = 0; k < population.size(); ++k) {
    clients.push_back({{"name", population[k].id}, {"examples", population[k].examples}});
  }
  const Json json{{"format", kFormat}, {"version", 1}, {"clients", std::move(clients)}};
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::vector<ClientInfo> kept_clients(const std::filesystem::path& run) {
  const std::filesystem::path path = run / "clients.json";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return {};
  const std::vector<std::byte> bytes = read_file(path);
  try {
    const Json json = parse_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (json.at("format") == kFormat) {
      std::vector<std::pair<std::string, std::size_t>> ids;
      for (const Json& client : json.at("clients")) {
        ids.emplace_back(client.at("name"), client.at("examples"));
      }
      const Population population = make_population(ids);
      std::vector<ClientInfo> out;
      for (std::size_t k = 0; k < population.size(); ++k) out.push_back(population[k]);
      return out;
    }
  } catch (const std::exception&) {  // not JSON, or not ours
  }
  throw InputError(
      fmt::format("{}: must hold a run's clients as it writes them, but does not", path.string()));
}

}  // namespace fedep
