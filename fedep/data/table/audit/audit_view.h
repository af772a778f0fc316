// A packed table as its audit looks at it: before its numbers are scaled, client by client, in the
// file's order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fedep/data/table/client_tables.h"
#include "fedep/data/table/packed_table.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

struct AuditView {
  const PackedTable& table;
  const ClientTables& clients;
  const TableSpec& spec;

  std::size_t size() const { return clients.ids.size(); }
  // Of training and held out.
  std::vector<std::uint32_t> rows(std::size_t client) const;
  bool has_events() const;
  bool has_number_outcome() const;
  // Of yes-or-no labels 0 or 1, of counts the count, else 0.
  double events(std::uint32_t row) const;
};

// How many rows each client has of something.
using CountByClient = std::map<std::size_t, std::size_t>;

// "5 at north, 4 at south and 3 more clients", those with most first.
std::string shown_counts(const CountByClient& counts, const std::vector<std::string>& ids);

}  // namespace fedep
