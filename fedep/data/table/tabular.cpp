#include "fedep/data/table/tabular.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/holdout.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/partition.h"
#include "fedep/data/table/packed_table.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_screen.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// A client of a packed table, with what is held out of its rows.
struct ClientTable {
  std::string id;
  std::vector<std::uint32_t> rows;
  std::vector<bool> test;  // held out
};

// "line 7: lactate is N/A, which is no number", and if a client lost all its rows so, that one's.
std::string first_skipped(const PackedTable& table) {
  const auto lost = std::find_if(table.clients.begin(), table.clients.end(),
                                 [](const PackedClient& client) { return client.rows.empty(); });
  if (lost == table.clients.end()) return table.first_skipped;
  return fmt::format("{}; so client {} has none of its {} rows left and takes no part",
                     lost->first_skipped, shown(lost->id), lost->skipped);
}

// Those with rows, in the order in which their first ones come.
std::vector<ClientTable> clients_of(PackedTable& table) {
  std::vector<ClientTable> out;
  for (PackedClient& client : table.clients) {
    if (!client.rows.empty()) out.push_back({std::move(client.id), std::move(client.rows), {}});
  }
  table.clients = {};
  std::sort(out.begin(), out.end(), [](const ClientTable& a, const ClientTable& b) {
    return a.rows.front() < b.rows.front();
  });
  return out;
}

void hold_out(const PackedTable& table, ClientTable& client, const TableSpec& spec,
              const DataSettings& settings) {
  TableRecord record;
  if (!spec.test_column.empty()) {
    for (const std::uint32_t row : client.rows) {
      table.read(row, record);
      client.test.push_back(record.test);
    }
  } else if (spec.group_column.empty()) {
    client.test = held_out(client.id, client.rows.size(), settings.test_fraction);
  } else {
    std::vector<std::string> groups;
    for (const std::uint32_t row : client.rows) {
      table.read(row, record);
      groups.push_back(record.group);
    }
    client.test = held_out(client.id, groups, settings.test_fraction);
  }
  if (settings.max_examples <= 0) return;
  std::size_t kept = 0;
  std::vector<std::uint32_t> rows;
  std::vector<bool> test;
  for (std::size_t i = 0; i < client.rows.size(); ++i) {
    if (!client.test[i] && ++kept > std::size_t(settings.max_examples)) continue;
    rows.push_back(client.rows[i]);
    test.push_back(client.test[i]);
  }
  client.rows = std::move(rows);
  client.test = std::move(test);
}

// A client's training rows, into `rows`, whose memory is used again.
std::span<TableRow> training_rows(const PackedTable& table, const ClientTable& client,
                                  TableRecord& record, std::vector<TableRow>& rows) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < client.rows.size(); ++i) {
    if (client.test[i]) continue;
    table.read(client.rows[i], record);
    if (count == rows.size()) rows.emplace_back();
    std::swap(rows[count++], record.features);
  }
  return std::span(rows).first(count);
}

// Numbers and categories as they are: a missing one is then 0.
void leave_unscaled(TableScale& scale) {
  for (ColumnScale& column : scale.numbers) column = {};
  for (CategoryScale& category : scale.categories) {
    for (auto& [value, column] : category.others) column = {};
  }
}

// Fills in the scale, and what was suspected on the way. Gives what is taken as missing where the
// scale is robust (`forget`).
ScreenedScale agree_on_scale(const PackedTable& table, const std::vector<ClientTable>& clients,
                             const std::string& source, ColumnScaling scaling,
                             TableFeatures& features) {
  TableRecord record;
  std::vector<TableRow> rows;
  if (scaling == ColumnScaling::none) {
    std::vector<ClientReport> reports;
    for (const ClientTable& client : clients) {
      reports.push_back(report(training_rows(table, client, record, rows)));
    }
    features.scale = pooled_scale(reports);
    leave_unscaled(features.scale);
    return {};
  }
  std::vector<std::string> ids;
  for (const ClientTable& client : clients) ids.push_back(client.id);
  ScreenedScale screened = screened_scale(ids, features.spec.numbers, [&](std::size_t client) {
    return training_rows(table, clients[client], record, rows);
  });
  const bool robust = scaling == ColumnScaling::robust;
  if (!robust) check_harmless(screened, source);
  features.scale = robust ? robust_scale(screened) : pooled_scale(screened.reports);
  features.suspected = told(screened.suspicions, robust);
  if (!robust) return {};
  screened.reports = screened.accepted = {};
  return screened;
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

// Label values of a table: of all rows, and of those in training.
struct LabelValues {
  std::set<std::string> negative;               // that mean no
  std::map<std::string, std::string> training;  // to the first cell that says so
};

LabelValues label_values(const PackedTable& table, const TableSpec& spec,
                         const std::vector<ClientTable>& clients) {
  LabelValues out;
  for (const ClientTable& client : clients) {
    for (std::size_t i = 0; i < client.rows.size(); ++i) {
      const Label label = table.label(client.rows[i]);
      const bool is_no = label.number == 0;
      if (spec.target == TargetKind::binary && is_no && !out.negative.contains(label.value)) {
        out.negative.insert(label.value);
      }
      if (client.test[i]) continue;
      const std::string name = spec.target != TargetKind::binary ? label.value
                               : label.number == 0               ? "0"
                                                                 : "1";
      out.training.try_emplace(name, label.value);
    }
  }
  return out;
}

// Who said only what means yes has said what means no if there is one other value.
void check_negative_labels(const std::string& source, const TableSpec& spec,
                           const std::set<std::string>& others) {
  if (others.size() < 2 || !spec.negative.empty()) return;
  std::vector<std::string> some;
  for (auto at = others.begin(); at != others.end() && some.size() < 4; ++at) {
    some.push_back(shown(*at));
  }
  throw InputError(fmt::format(
      "{}: column {} must have one value besides {}, but has {}: {}{}; data.label_negative says "
      "which mean no (\"*\": all of them)",
      source, shown(spec.label_column), fmt::join(spec.positive, ", "), others.size(),
      fmt::join(some, ", "), others.size() > some.size() ? ", …" : ""));
}

// Labels that training rows have; binary ones must have both.
std::vector<std::string> classes(const std::string& source, const TableSpec& spec,
                                 const std::map<std::string, std::string>& values) {
  if (values.size() < 2) {
    throw InputError(
        fmt::format("{}: column {} must have at least two labels in training rows, but {}", source,
                    shown(spec.label_column),
                    values.empty() ? "has none" : "all are " + shown(values.begin()->second)));
  }
  std::vector<std::string> names;
  for (const auto& [name, cell] : values) names.push_back(name);
  return names;
}

void append_target(const Label& label, TargetKind target, const std::vector<std::string>& names,
                   Batch& to) {
  if (target == TargetKind::real || target == TargetKind::count) {
    to.reals.push_back(float(label.number));
  } else if (target == TargetKind::binary) {
    to.labels.push_back(std::int32_t(label.number));
  } else {
    const auto at = std::lower_bound(names.begin(), names.end(), label.value);
    to.labels.push_back(std::int32_t(at - names.begin()));
  }
}

std::unique_ptr<Dataset> dataset_of(RecordSource& records, const TableSpec& spec,
                                    const DataSettings& settings) {
  const std::string& source = records.heading().source;
  std::optional<PackedTable> packed = pack_table(records, spec);
  PackedTable& table = *packed;
  const std::string why_skipped = first_skipped(table);
  std::vector<ClientTable> clients = clients_of(table);
  std::erase_if(clients, [&](const ClientTable& client) {
    return int(client.rows.size()) < settings.min_examples;
  });
  if (settings.min_examples > 0) check_clients_left(source, clients.size(), settings);
  for (ClientTable& client : clients) hold_out(table, client, spec, settings);
  TableFeatures features{.data = settings.name, .spec = spec};
  const ScreenedScale screened = agree_on_scale(table, clients, source, settings.scale, features);
  ::malloc_trim(0);  // 100,000 reports leave 40 MB that only this gives back
  const bool has_classes = spec.target == TargetKind::binary || spec.target == TargetKind::label;
  if (has_classes && !clients.empty()) {
    const LabelValues labels = label_values(table, spec, clients);
    if (spec.target == TargetKind::binary) check_negative_labels(source, spec, labels.negative);
    const std::vector<std::string> names = classes(source, spec, labels.training);
    if (spec.target == TargetKind::label) features.output_names = names;
  }
  DatasetInfo info = info_of(features);
  info.skipped_records = table.skipped;
  info.first_skipped = why_skipped;
  if (info.feature_names.empty()) {
    throw InputError(fmt::format("{}: expected feature columns, but there is none", source));
  }

  std::size_t test_rows = 0, all_rows = 0;
  for (const ClientTable& client : clients) {
    all_rows += client.rows.size();
    test_rows += std::size_t(std::count(client.test.begin(), client.test.end(), true));
  }
  ClientRows train_clients, test_clients;
  Batch train, test;
  train.dense.reserve((all_rows - test_rows) * info.feature_names.size());
  test.dense.reserve(test_rows * info.feature_names.size());
  TableRecord record;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    const ClientTable& client = clients[c];
    const std::size_t train_before = train.size, test_before = test.size;
    for (std::size_t i = 0; i < client.rows.size(); ++i) {
      table.read(client.rows[i], record);
      forget(screened, c, record.features);
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
      if (!spec.exposure_column.empty()) {
        to.log_exposure.push_back(float(std::log(record.features.exposure)));
      }
      ++to.size;
    }
    if (train.size > train_before) train_clients.add(client.id, train.size - train_before);
    if (test.size > test_before) test_clients.add(client.id, test.size - test_before);
  }
  packed.reset();
  features.far = far_from(test.size > 0 ? test : train);
  info.table = std::make_shared<const TableFeatures>(std::move(features));
  return memory_dataset(std::move(info), {std::move(train_clients), batch_rows(std::move(train))},
                        {std::move(test_clients), batch_rows(std::move(test))});
}

}  // namespace

std::unique_ptr<Dataset> tabular_dataset(const DelimitedTable& table, const TableSpec& spec,
                                         const DataSettings& settings) {
  return dataset_of(*records_of(table), spec, settings);
}

std::unique_ptr<Dataset> open_tabular(const DataSettings& settings, std::uint64_t,
                                      const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / settings.path;
  const std::unique_ptr<RecordSource> records = read_records(file, format_of(file));
  return dataset_of(*records, table_spec(settings, records->heading()), settings);
}

}  // namespace fedep
