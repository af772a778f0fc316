#include "fedep/data/table/tabular.h"

#include <malloc.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/memory_dataset.h"
#include "fedep/data/table/agreed_intervals.h"
#include "fedep/data/table/audit/audit_features.h"
#include "fedep/data/table/audit/audit_rows.h"
#include "fedep/data/table/audit/audit_table.h"
#include "fedep/data/table/chosen_terms.h"
#include "fedep/data/table/client_tables.h"
#include "fedep/data/table/packed_table.h"
#include "fedep/data/table/row_encoder.h"
#include "fedep/data/table/screen/table_screen.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// By column.
std::vector<CategoryScale> category_scales(const PackedTable& table, const ClientTables& clients,
                                           const TableSpec& spec,
                                           const std::map<std::string, std::string>& references) {
  std::vector<CategoryScale> out;
  for (std::size_t j = 0; j < spec.categories.size(); ++j) {
    std::map<std::string, std::size_t> rows_by_value;
    for (const std::uint32_t row : clients.train.rows) {
      const std::string& value = table.category(row, j);
      if (!value.empty()) ++rows_by_value[value];
    }
    const auto chosen = references.find(spec.categories[j]);
    const bool is_chosen = chosen != references.end();
    if (is_chosen) check_reference(chosen->first, chosen->second, rows_by_value);
    out.push_back(scale_of(rows_by_value, is_chosen ? chosen->second : std::string()));
  }
  return out;
}

// Numbers and categories as they are, a missing one is then 0; but no number may be so large that it
// has no variance.
void leave_unscaled(std::size_t clients, const ValuesOf& values_of, TableScale& scale) {
  std::vector<ColumnSums> sums(clients);
  std::vector<double> values;
  for (std::size_t j = 0; j < scale.numbers.size(); ++j) {
    for (std::size_t c = 0; c < clients; ++c) {
      values_of(c, j, values);
      sums[c] = sums_of(values);
    }
    scale_of(pooled(sums));
  }
  for (CategoryScale& category : scale.categories) {
    for (auto& [value, column] : category.others) column = {};
  }
}

// What strangers have in their columns is missing.
void forget_strangers(const ScreenedScale& screened, const ClientTables& clients,
                      PackedTable& table) {
  for (std::size_t j = 0; j < screened.screens.size(); ++j) {
    for (const Stranger& stranger : screened.screens[j].strangers) {
      for (const RowLists* rows : {&clients.train, &clients.test}) {
        for (const std::uint32_t row : rows->of(stranger.client)) table.forget_number(row, j);
      }
    }
  }
}

// What a screen suspects, by name; refused where it decides the scale.
void find_suspicions(const ScreenedScale& screened, std::span<const std::string> lines, bool robust,
                     std::vector<Finding>& findings) {
  const auto name = [](bool whole) {
    return std::string(whole ? "other-units-or-coding" : "outlying-value");
  };
  const std::optional<ScaleHarm> harm = robust ? std::nullopt : harm_of(screened);
  if (harm) findings.push_back({name(harm->whole), true, harm->text});
  for (std::size_t i = 0; i < lines.size() && !harm; ++i) {
    const bool whole = i < screened.suspicions.size() && screened.suspicions[i].whole;
    findings.push_back({name(whole), false, lines[i]});
  }
}

// Fills in the scale, and what was suspected on the way. What is taken as missing where the scale is
// robust is missing from then on.
void agree_on_scale(const ClientTables& clients, const std::string& source,
                    const DataSettings& settings, PackedTable& table, TableFeatures& features,
                    TableAudit& audit) {
  const TableSpec& spec = features.spec;
  TableScale& scale = features.scale;
  const ValuesOf values_of = [&](std::size_t client, std::size_t column,
                                 std::vector<double>& values) {
    values.clear();
    for (const std::uint32_t row : clients.train.of(client)) {
      const double value = table.number(row, column);
      if (!std::isnan(value)) values.push_back(value);
    }
  };
  scale.numbers.resize(spec.numbers.size());
  scale.categories = category_scales(table, clients, spec, chosen_references(settings, spec));
  if (settings.scale == ColumnScaling::none)
    return leave_unscaled(clients.ids.size(), values_of, scale);
  const ScreenedScale screened = screened_scale(clients.ids, spec.numbers, values_of);
  const bool robust = settings.scale == ColumnScaling::robust;
  features.suspected = told(screened.suspicions, robust);
  find_suspicions(screened, features.suspected, robust, audit.findings);
  if (std::ranges::any_of(audit.findings, &Finding::refused)) checked(source, std::move(audit));
  scale.numbers = robust ? robust_scale(screened) : plain_scale(screened);
  if (robust) forget_strangers(screened, clients, table);
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
  bool has_positive = false;                    // some row means yes
  std::map<std::string, std::string> training;  // to the first cell that says so
};

LabelValues label_values(const PackedTable& table, TargetKind target, const ClientTables& clients) {
  LabelValues out;
  std::vector<bool> in_training(table.labels.size()), in_test(table.labels.size());
  for (const std::uint32_t row : clients.train.rows) {
    const std::uint32_t label = table.label(row);
    if (in_training[label]) continue;
    in_training[label] = true;
    const std::string& cell = table.labels[label];
    const bool is_no = table.label_of_word[label] == 0;
    out.training.try_emplace(target != TargetKind::binary ? cell : is_no ? "0" : "1", cell);
  }
  for (const std::uint32_t row : clients.test.rows) in_test[table.label(row)] = true;
  for (std::uint32_t label = 0; label < table.labels.size(); ++label) {
    const bool is_there = in_training[label] || in_test[label];
    if (target != TargetKind::binary || !is_there) continue;
    if (table.label_of_word[label] == 0) {
      out.negative.insert(table.labels[label]);
    } else {
      out.has_positive = true;
    }
  }
  return out;
}

// Who said only what means yes has said what means no if there is one other value.
void check_labels(const std::string& source, const TableSpec& spec, const LabelValues& labels) {
  const std::set<std::string>& others = labels.negative;
  if (others.size() < 2) return;
  std::vector<std::string> some;
  for (auto at = others.begin(); at != others.end() && some.size() < 4; ++at) {
    some.push_back(shown(*at));
  }
  if (!labels.has_positive && (spec.negative.empty() || !spec.is_time_to_event())) {
    const std::vector<std::string_view> values(others.begin(), others.end());
    const std::string hint = suggestion(spec.positive.front(), values);
    throw InputError(fmt::format(
        "{}: data.label_positive must name values of column {}, but no row has {}{} it "
        "has {}{}",
        source, shown(spec.label_column), fmt::join(spec.positive, ", "), hint.empty() ? ";" : hint,
        fmt::join(some, ", "), others.size() > some.size() ? ", …" : ""));
  }
  if (!spec.negative.empty()) return;
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

// Of yes-or-no labels 0 or 1, else the place among these names; -1 if it is none of them. By word.
std::vector<std::int32_t> classes_of_labels(const PackedTable& table, TargetKind target,
                                            const std::vector<std::string>& names) {
  std::vector<std::int32_t> out;
  for (std::uint32_t label = 0; label < table.labels.size(); ++label) {
    const auto at = std::lower_bound(names.begin(), names.end(), table.labels[label]);
    const bool is_name = at != names.end() && *at == table.labels[label];
    out.push_back(target == TargetKind::binary ? std::int32_t(table.label_of_word[label])
                  : is_name                    ? std::int32_t(at - names.begin())
                                               : -1);
  }
  return out;
}

// Examples of all clients, one client's after the other's.
struct EncodedRows {
  ClientRows clients = {};
  Batch batch = {};
  std::vector<std::uint32_t> groups = {};  // as Dataset::groups, where the table has them
  std::size_t skipped = 0;                 // of a class that no training row has
};

// Of a table whose numbers are scaled.
EncodedRows encoded_rows(const PackedTable& table, const std::vector<std::string>& ids,
                         const RowLists& rows, const TableFeatures& features,
                         const DatasetInfo& info) {
  const TableSpec& spec = features.spec;
  const bool has_classes = spec.target == TargetKind::binary || spec.target == TargetKind::label;
  const bool has_spells = spec.is_time_to_event();
  const std::vector<std::int32_t> classes =
      classes_of_labels(table, spec.target, info.output_names);
  const RowEncoder encoder(spec, features.scale);
  ScaledRow scaled;
  EncodedRows out;
  Batch& to = out.batch;
  to.dense.reserve(rows.rows.size() * info.feature_names.size());
  if (has_classes) {
    to.labels.reserve(rows.rows.size());
  } else {
    to.reals.reserve(rows.rows.size());
  }
  for (std::size_t c = 0; c < ids.size(); ++c) {
    const std::size_t before = to.size;
    std::vector<std::uint32_t> groups;
    if (!spec.group_column.empty()) groups = groups_of(table, rows.of(c));
    std::size_t place = 0;
    for (const std::uint32_t row : rows.of(c)) {
      const std::size_t at = place++;
      if (has_classes && classes[table.label(row)] < 0) {
        ++out.skipped;
        continue;
      }
      table.read_row(row, scaled);
      if (has_spells) {
        append_pieces(encoder, scaled, table.start(row), table.stop(row), features.scale.cuts, to);
        to.reals.resize(to.size);
        if (table.has_event(row)) to.reals.back() = 1.f;
        // A spell's pieces stay together, and a patient's spells.
        out.groups.resize(to.size, groups.empty() ? std::uint32_t(at) : groups[at]);
        continue;
      }
      encoder.encode(scaled, 0, to.dense);
      if (has_classes) {
        to.labels.push_back(classes[table.label(row)]);
      } else {
        to.reals.push_back(float(table.label_number(row)));
      }
      if (!spec.exposure_column.empty()) {
        to.log_exposure.push_back(float(std::log(table.exposure(row))));
      }
      if (!groups.empty()) out.groups.push_back(groups[at]);
      ++to.size;
    }
    if (to.size > before) out.clients.add(ids[c], to.size - before);
  }
  return out;
}

// `answered`: who describes the table has said what stands for a missing value.
std::unique_ptr<Dataset> dataset_of(RecordSource& records, const TableSpec& columns,
                                    const DataSettings& settings, bool answered) {
  const std::string& source = records.heading().source;
  TableFeatures features{.data = settings.name, .spec = columns};
  add_terms(settings, features.spec);
  const TableSpec& spec = features.spec;
  std::optional<PackedTable> packed = pack_table(records, spec);
  PackedTable& table = *packed;
  const std::string why_skipped = first_skipped(table), who_skipped = left_out_by_client(table);
  const std::vector<Finding> reading = findings_of_reading(table);
  const ClientTables clients = client_tables(table, spec, settings, source);
  TableAudit audit = audit_table({table, clients, spec}, answered);
  audit.findings.insert(audit.findings.begin(), reading.begin(), reading.end());
  agree_on_scale(clients, source, settings, table, features, audit);
  table.scale_numbers(features.scale.numbers);
  ::malloc_trim(0);  // half of the numbers' memory, which only this gives back
  agree_on_terms(table, clients, settings.scale, features);
  if (spec.is_time_to_event() && !clients.ids.empty()) {
    const LabelValues labels = label_values(table, TargetKind::binary, clients);
    check_labels(source, spec, labels);
    agree_on_intervals(table, clients, settings, source, features.scale);
  }
  const bool has_classes = spec.target == TargetKind::binary || spec.target == TargetKind::label;
  if (has_classes && !clients.ids.empty()) {
    const LabelValues labels = label_values(table, spec.target, clients);
    if (spec.target == TargetKind::binary) check_labels(source, spec, labels);
    const std::vector<std::string> names = classes(source, spec, labels.training);
    if (spec.target == TargetKind::label) features.output_names = names;
  }
  DatasetInfo info = info_of(features);
  info.first_skipped = why_skipped;
  if (info.feature_names.empty()) {
    throw InputError(fmt::format("{}: expected feature columns, but there is none", source));
  }
  EncodedRows train = encoded_rows(table, clients.ids, clients.train, features, info);
  EncodedRows test = encoded_rows(table, clients.ids, clients.test, features, info);
  info.skipped_records = table.skipped.count + train.skipped + test.skipped;
  packed.reset();
  find_left_out(info, who_skipped, audit.findings);
  audit_features(train.batch, info, audit);
  find_constant_columns(features, audit.findings);
  info.audit = checked(source, std::move(audit));
  features.far = far_from(test.batch.size > 0 ? test.batch : train.batch);
  info.table = std::make_shared<const TableFeatures>(std::move(features));
  return memory_dataset(
      std::move(info),
      {std::move(train.clients), batch_rows(std::move(train.batch)), std::move(train.groups)},
      {std::move(test.clients), batch_rows(std::move(test.batch))});
}

}  // namespace

std::unique_ptr<Dataset> tabular_dataset(const DelimitedTable& table, const TableSpec& spec,
                                         const DataSettings& settings) {
  return dataset_of(*records_of(table), spec, settings, true);
}

std::unique_ptr<Dataset> open_tabular(const DataSettings& settings, std::uint64_t,
                                      const std::filesystem::path& folder) {
  const std::filesystem::path file = folder / settings.path;
  const std::unique_ptr<RecordSource> records = read_records(file, format_of(file));
  return dataset_of(*records, table_spec(settings, records->heading()), settings,
                    !settings.missing.empty());
}

}  // namespace fedep
