#include "fedep/data/table/tabular.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/holdout.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/partition.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_screen.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// All that one client has.
struct ClientTable {
  std::string id;
  std::vector<TableRecord> records;
  std::vector<bool> test;  // held out

  std::vector<TableRow> training_rows() const {
    std::vector<TableRow> rows;
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (!test[i]) rows.push_back(records[i].features);
    }
    return rows;
  }
};

struct Clients {
  std::vector<ClientTable> tables;  // in order of first appearance
  std::size_t skipped = 0;
  std::string first_skipped;  // its line, and why
};

// A table that was put together of others has no lines.
std::string place_of(const DelimitedTable& table, std::size_t row) {
  return row < table.lines.size() ? fmt::format("line {}", table.lines[row])
                                  : fmt::format("record {}", row + 1);
}

Clients split_by_client(const DelimitedTable& table, const TableSpec& spec) {
  const RecordParser parser(table, spec);
  Clients out{{}, table.bad_records, {}};
  if (table.bad_records > 0) {
    out.first_skipped = fmt::format(
        "line {} has not the header's number of fields, or stray quotes", table.first_bad_line);
  }
  std::map<std::string, std::size_t> place;
  std::size_t good = 0;
  for (std::size_t row = 0; row < table.rows.size(); ++row) {
    const std::vector<std::string>& fields = table.rows[row];
    const std::string client = parser.client(fields);
    std::optional<TableRecord> record = parser.parse(fields);
    if (client.empty() || !record) {
      ++out.skipped;
      if (out.first_skipped.empty()) {
        out.first_skipped = fmt::format("{}: {}", place_of(table, row), parser.problem(fields));
      }
      continue;
    }
    const auto [at, is_new] = place.try_emplace(client, out.tables.size());
    if (is_new) out.tables.push_back({client, {}, {}});
    out.tables[at->second].records.push_back(*std::move(record));
    ++good;
  }
  if (out.skipped > good) {
    throw InputError(
        fmt::format("{}: expected records with client, label and numbers, but {} of {} "
                    "lack one; {}",
                    table.source, out.skipped, out.skipped + good, out.first_skipped));
  }
  return out;
}

void hold_out(ClientTable& client, const TableSpec& spec, const DataSettings& settings) {
  if (!spec.test_column.empty()) {
    for (const TableRecord& record : client.records) client.test.push_back(record.test);
  } else if (spec.group_column.empty()) {
    client.test = held_out(client.id, client.records.size(), settings.test_fraction);
  } else {
    std::vector<std::string> groups;
    for (const TableRecord& record : client.records) groups.push_back(record.group);
    client.test = held_out(client.id, groups, settings.test_fraction);
  }
  if (settings.max_examples <= 0) return;
  std::size_t kept = 0;
  std::vector<TableRecord> records;
  std::vector<bool> test;
  for (std::size_t i = 0; i < client.records.size(); ++i) {
    if (!client.test[i] && ++kept > std::size_t(settings.max_examples)) continue;
    records.push_back(std::move(client.records[i]));
    test.push_back(client.test[i]);
  }
  client.records = std::move(records);
  client.test = std::move(test);
}

// Numbers and categories as they are: a missing one is then 0.
void leave_unscaled(TableScale& scale) {
  for (ColumnScale& column : scale.numbers) column = {};
  for (CategoryScale& category : scale.categories) {
    for (auto& [value, column] : category.others) column = {};
  }
}

// Fills in the scale, and what was suspected on the way. Where columns are taken as missing they
// are in `clients` from then on.
void agree_on_scale(std::vector<ClientTable>& clients, const std::string& source,
                    ColumnScaling scaling, TableFeatures& features) {
  if (scaling == ColumnScaling::none) {
    std::vector<ClientReport> reports;
    for (const ClientTable& client : clients) reports.push_back(report(client.training_rows()));
    features.scale = pooled_scale(reports);
    return leave_unscaled(features.scale);
  }
  std::vector<std::string> ids;
  for (const ClientTable& client : clients) ids.push_back(client.id);
  const ScreenedScale screened =
      screened_scale(ids, features.spec.numbers,
                     [&](std::size_t client) { return clients[client].training_rows(); });
  const bool robust = scaling == ColumnScaling::robust;
  if (!robust) check_harmless(screened, source);
  features.scale = robust ? robust_scale(screened) : pooled_scale(screened.reports);
  features.suspected = told(screened.suspicions, robust);
  for (std::size_t c = 0; robust && c < clients.size(); ++c) {
    for (TableRecord& record : clients[c].records) forget(screened, c, record.features);
  }
}

// The distance that 95 % of these rows stay below.
double far_from(const Batch& rows) {
  std::vector<double> distances;
  const std::size_t width = rows.size == 0 ? 0 : rows.dense.size() / rows.size;
  for (std::size_t i = 0; i < rows.size; ++i) {
    distances.push_back(distance(std::span(rows.dense).subspan(i * width, width)));
  }
  return quantile(std::move(distances), 0.95);
}

// Who said only what means yes has said what means no if there is one other value.
void check_negative_labels(const DelimitedTable& table, const TableSpec& spec,
                           const std::vector<ClientTable>& clients) {
  std::set<std::string> others;
  for (const ClientTable& client : clients) {
    for (const TableRecord& record : client.records) {
      if (record.label.number == 0) others.insert(record.label.value);
    }
  }
  if (others.size() < 2 || !spec.negative.empty()) return;
  std::vector<std::string> some;
  for (auto at = others.begin(); at != others.end() && some.size() < 4; ++at) {
    some.push_back(shown(*at));
  }
  throw InputError(fmt::format(
      "{}: column {} must have one value besides {}, but has {}: {}{}; data.label_negative says "
      "which mean no (\"*\": all of them)",
      table.source, shown(spec.label_column), fmt::join(spec.positive, ", "), others.size(),
      fmt::join(some, ", "), others.size() > some.size() ? ", …" : ""));
}

// Labels that training rows have; binary ones must have both.
std::vector<std::string> classes(const DelimitedTable& table, const TableSpec& spec,
                                 const std::vector<ClientTable>& clients) {
  std::map<std::string, std::string> values;  // to the first cell that says so
  for (const ClientTable& client : clients) {
    for (std::size_t i = 0; i < client.records.size(); ++i) {
      const Label& label = client.records[i].label;
      if (client.test[i]) continue;
      values.try_emplace(
          spec.target == TargetKind::binary ? fmt::format("{}", label.number) : label.value,
          label.value);
    }
  }
  if (values.size() < 2) {
    throw InputError(
        fmt::format("{}: column {} must have at least two labels in training rows, but {}",
                    table.source, shown(spec.label_column),
                    values.empty() ? "has none" : "all are " + shown(values.begin()->second)));
  }
  std::vector<std::string> names;
  for (const auto& [name, cell] : values) names.push_back(name);
  return names;
}

void append_target(const Label& label, TargetKind target, const std::vector<std::string>& names,
                   Batch& to) {
  if (target == TargetKind::real) {
    to.reals.push_back(float(label.number));
  } else if (target == TargetKind::binary) {
    to.labels.push_back(std::int32_t(label.number));
  } else {
    const auto at = std::lower_bound(names.begin(), names.end(), label.value);
    to.labels.push_back(std::int32_t(at - names.begin()));
  }
}

}  // namespace

std::unique_ptr<Dataset> tabular_dataset(const DelimitedTable& table, const TableSpec& spec,
                                         const DataSettings& settings) {
  Clients clients = split_by_client(table, spec);
  std::erase_if(clients.tables, [&](const ClientTable& client) {
    return int(client.records.size()) < settings.min_examples;
  });
  if (settings.min_examples > 0) {
    check_clients_left(table.source, clients.tables.size(), settings);
  }
  for (ClientTable& client : clients.tables) hold_out(client, spec, settings);
  TableFeatures features{.data = settings.name, .spec = spec};
  agree_on_scale(clients.tables, table.source, settings.scale, features);
  if (spec.target == TargetKind::binary) check_negative_labels(table, spec, clients.tables);
  if (spec.target != TargetKind::real && !clients.tables.empty()) {
    const std::vector<std::string> names = classes(table, spec, clients.tables);
    if (spec.target == TargetKind::label) features.output_names = names;
  }
  DatasetInfo info = info_of(features);
  info.skipped_records = clients.skipped;
  info.first_skipped = clients.first_skipped;
  if (info.feature_names.empty()) {
    throw InputError(fmt::format("{}: expected feature columns, but there is none", table.source));
  }

  ClientRows train_clients, test_clients;
  Batch train, test;
  for (const ClientTable& client : clients.tables) {
    const std::size_t train_before = train.size, test_before = test.size;
    for (std::size_t i = 0; i < client.records.size(); ++i) {
      const TableRecord& record = client.records[i];
      const bool unseen_class = spec.target == TargetKind::label &&
                                !std::binary_search(info.output_names.begin(),
                                                    info.output_names.end(), record.label.value);
      if (unseen_class) {
        ++info.skipped_records;
        continue;
      }
      Batch& to = client.test[i] ? test : train;
      if (spec.intercept) to.dense.push_back(1.f);
      encode(record.features, features.scale, to.dense);
      append_target(record.label, spec.target, info.output_names, to);
      ++to.size;
    }
    if (train.size > train_before) train_clients.add(client.id, train.size - train_before);
    if (test.size > test_before) test_clients.add(client.id, test.size - test_before);
  }
  features.far = far_from(test.size > 0 ? test : train);
  info.table = std::make_shared<const TableFeatures>(std::move(features));
  return memory_dataset(std::move(info), {std::move(train_clients), batch_rows(std::move(train))},
                        {std::move(test_clients), batch_rows(std::move(test))});
}

std::unique_ptr<Dataset> open_tabular(const DataSettings& settings, std::uint64_t,
                                      const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / settings.path;
  const DelimitedTable table = read_delimited(file, format_of(file));
  return tabular_dataset(table, table_spec(settings, table), settings);
}

}  // namespace fedep
