// The rows of a packed table by client, and which of them are held out.
//
//   const ClientTables clients = client_tables(table, spec, settings, source);
//   for (const std::uint32_t row : clients.train.of(client)) use(table.number(row, 3));
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/table/packed_table.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

// Client c has rows [offsets[c], offsets[c + 1]), in the file's order.
struct RowLists {
  std::vector<std::uint32_t> rows = {};
  std::vector<std::size_t> offsets{0};

  std::span<const std::uint32_t> of(std::size_t client) const {
    return std::span(rows).subspan(offsets[client], offsets[client + 1] - offsets[client]);
  }
};

struct ClientTables {
  std::vector<std::string> ids = {};
  RowLists train = {}, test = {};
};

// Those with rows enough, in the order in which their first ones come. Takes the ids out of the
// table. Throws InputError if data.min_examples leaves too few clients.
ClientTables client_tables(PackedTable& table, const TableSpec& spec, const DataSettings& settings,
                           const std::string& source);

// Which of a client's rows belong together, by number (holdout.h); of a table that has groups.
std::vector<std::uint32_t> groups_of(const PackedTable& table, std::span<const std::uint32_t> rows);

// "line 7: lactate is N/A, which is no number", and if a client lost all its rows so, that one's.
std::string first_skipped(const PackedTable& table);

}  // namespace fedep
