// The clients of a run on a table, as its directory keeps them (clients.json): names and training examples, so that
// what a site file holds can be told by its client's name.
//
//   replace_file(run / "clients.json", clients_json(task.population()));
//   const std::vector<ClientInfo> clients = kept_clients(run);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "fedep/round/population.h"

namespace fedep {

std::string clients_json(const Population& population);

// Empty where there is no such file: earlier runs have none. Throws InputError for a file that is not one.
std::vector<ClientInfo> kept_clients(const std::filesystem::path& run);

}  // namespace fedep
