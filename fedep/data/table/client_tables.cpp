#include "fedep/data/table/client_tables.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/holdout.h"
#include "fedep/data/partition.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::vector<std::uint32_t> rows_per_client(const PackedTable& table) {
  std::vector<std::uint32_t> out(table.client_ids.size());
  for (std::uint32_t row = 0; row < table.size(); ++row) ++out[table.client(row)];
  return out;
}

// All rows of those who have rows enough, and in `owners` whose they are.
RowLists grouped(const PackedTable& table, int min_examples, std::vector<std::uint32_t>& owners) {
  constexpr std::uint32_t kNew = WordList::kNone, kLeftOut = kNew - 1;
  const std::vector<std::uint32_t> counts = rows_per_client(table);
  std::vector<std::uint32_t> places(counts.size(), kNew);
  RowLists out;
  for (std::uint32_t row = 0; row < table.size(); ++row) {
    const std::uint32_t client = table.client(row);
    if (places[client] != kNew) continue;
    const bool enough = int(counts[client]) >= min_examples;
    places[client] = enough ? std::uint32_t(owners.size()) : kLeftOut;
    if (!enough) continue;
    owners.push_back(client);
    out.offsets.push_back(out.offsets.back() + counts[client]);
  }
  out.rows.resize(out.offsets.back());
  std::vector<std::size_t> next = out.offsets;
  for (std::uint32_t row = 0; row < table.size(); ++row) {
    const std::uint32_t place = places[table.client(row)];
    if (place != kLeftOut) out.rows[next[place]++] = row;
  }
  return out;
}

std::vector<bool> held_out_of(const PackedTable& table, const std::string& id,
                              std::span<const std::uint32_t> rows, const TableSpec& spec,
                              double fraction) {
  if (!spec.test_column.empty()) {
    std::vector<bool> out;
    for (const std::uint32_t row : rows) out.push_back(table.is_test(row));
    return out;
  }
  if (spec.group_column.empty()) return held_out(id, rows.size(), fraction);
  return held_out(id, groups_of(table, rows), fraction);
}

}  // namespace

std::vector<std::uint32_t> groups_of(const PackedTable& table,
                                     std::span<const std::uint32_t> rows) {
  std::vector<std::string> groups;
  for (const std::uint32_t row : rows) groups.push_back(table.group(row));
  return numbered_groups(groups);
}

ClientTables client_tables(PackedTable& table, const TableSpec& spec, const DataSettings& settings,
                           const std::string& source) {
  std::vector<std::uint32_t> owners;
  const RowLists all = grouped(table, settings.min_examples, owners);
  if (settings.min_examples > 0) check_clients_left(source, owners.size(), settings);
  std::vector<std::string> ids = table.client_ids.take();
  ClientTables out;
  for (std::size_t c = 0; c < owners.size(); ++c) {
    const std::span<const std::uint32_t> rows = all.of(c);
    out.ids.push_back(std::move(ids[owners[c]]));
    const std::vector<bool> test =
        held_out_of(table, out.ids.back(), rows, spec, settings.test_fraction);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      (test[i] ? out.test : out.train).rows.push_back(rows[i]);
    }
    if (settings.max_examples > 0) {
      const std::size_t most = out.train.offsets.back() + std::size_t(settings.max_examples);
      out.train.rows.resize(std::min(most, out.train.rows.size()));
    }
    out.train.offsets.push_back(out.train.rows.size());
    out.test.offsets.push_back(out.test.rows.size());
  }
  return out;
}

std::string first_skipped(const PackedTable& table) {
  const std::vector<std::uint32_t> counts = rows_per_client(table);
  const auto lost = std::find(counts.begin(), counts.end(), 0u);
  if (lost == counts.end()) return table.skipped.first;
  const auto client = std::uint32_t(lost - counts.begin());
  const SkippedRecords& skipped = table.skipped_of.at(client);
  return fmt::format("{}; so client {} has none of its {} rows left and takes no part",
                     skipped.first, shown(table.client_ids[client]), skipped.count);
}

}  // namespace fedep
