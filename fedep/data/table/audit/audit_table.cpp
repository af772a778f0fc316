#include "fedep/data/table/audit/audit_table.h"

#include <utility>

#include "fedep/data/table/audit/audit_columns.h"
#include "fedep/data/table/audit/audit_rows.h"

namespace fedep {
namespace {

std::vector<AuditColumn> columns_of(const AuditView& view) {
  std::vector<AuditColumn> out;
  if (view.has_number_outcome()) {
    out.push_back({.name = view.spec.label_column, .use = ColumnUse::outcome});
  }
  for (const std::string& name : view.spec.numbers) out.push_back({.name = name});
  for (const std::string& name : view.spec.categories) {
    out.push_back({.name = name, .use = ColumnUse::category});
  }
  return out;
}

// What one client says of all columns, in their order.
ClientAudit report_of_client(const AuditView& view, std::size_t client) {
  const std::vector<std::uint32_t> rows = view.rows(client);
  ClientAudit out{.id = view.clients.ids[client], .rows = double(rows.size())};
  std::vector<double> events, values;
  for (const std::uint32_t row : rows) {
    events.push_back(view.events(row));
    out.events += events.back();
  }
  const auto take_numbers = [&](auto&& value) {
    values.clear();
    for (const std::uint32_t row : rows) values.push_back(value(row));
    out.columns.push_back(report_of(values, events));
  };
  if (view.has_number_outcome()) {
    take_numbers([&](std::uint32_t row) { return view.table.label_number(row); });
  }
  for (std::size_t j = 0; j < view.spec.numbers.size(); ++j) {
    take_numbers([&](std::uint32_t row) { return view.table.number(row, j); });
  }
  std::vector<const std::string*> words;
  for (std::size_t j = 0; j < view.spec.categories.size(); ++j) {
    words.clear();
    for (const std::uint32_t row : rows) words.push_back(&view.table.category(row, j));
    out.columns.push_back(report_of(words, events));
  }
  return out;
}

}  // namespace

TableAudit audit_table(const AuditView& view, bool answered) {
  TableAudit out{.has_events = view.has_events(), .columns = columns_of(view)};
  std::vector<std::vector<EmptyColumn>> empty(out.columns.size());
  const bool keeps = view.size() * out.columns.size() <= TableAudit::kMostCells;
  for (std::size_t c = 0; c < view.size(); ++c) {
    ClientAudit client = report_of_client(view, c);
    out.rows += client.rows;
    out.events += client.events;
    for (std::size_t j = 0; j < client.columns.size(); ++j) {
      const ColumnReport& column = client.columns[j];
      if (column.values.count == 0) empty[j].push_back({c, column.rows});
      add(out.columns[j].all, column);
    }
    if (keeps) out.clients.push_back(std::move(client));
  }
  find_missing_codes(view, answered, out);
  find_missing_columns(view, empty, out);
  find_ids_as_numbers(out);
  find_many_levels(out);
  find_duplicated_columns(view, out);
  find_separation(view, out);
  find_duplicated_rows(view, out.findings);
  find_torn_groups(view, out.findings);
  return out;
}

}  // namespace fedep
