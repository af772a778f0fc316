#include "app/data/describe_columns.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::size_t kNameWidth = 28, kMostLevels = 8;

// A number of a table, without digits that nobody reads; nothing for none.
std::string cell(double value) {
  if (std::isnan(value)) return "";
  if (std::isinf(value)) return "inf";
  const bool large = std::fabs(value) >= 1e4 && std::fabs(value) < 1e8;
  return large ? fmt::format("{:.0f}", value) : fmt::format("{:.4g}", value);
}

std::string line_of(std::string_view name, const std::vector<std::string>& cells) {
  std::string out = fmt::format("{:<{}}", name, kNameWidth);
  for (const std::string& text : cells) out += fmt::format(" {:>9}", text);
  while (out.ends_with(' ')) out.pop_back();
  return out + '\n';
}

// By its place, also where a name of bytes would be cut within a character.
std::string clipped(const std::string& name) {
  if (name.size() <= kNameWidth) return name;
  std::size_t end = kNameWidth - 3;
  while (end > 0 && (static_cast<unsigned char>(name[end]) & 0xC0) == 0x80) --end;
  return name.substr(0, end) + "…";
}

std::string heading_of(const TableAudit& audit, bool with_inflation) {
  std::vector<std::string> cells{"n"};
  if (audit.has_events) cells.emplace_back("events");
  for (const char* name : {"missing", "mean", "sd", "min", "max"}) cells.emplace_back(name);
  if (with_inflation) cells.emplace_back("VIF");
  return line_of("", cells);
}

std::string report_line(const TableAudit& audit, const std::string& name,
                        const ColumnReport& report, double inflation) {
  const auto count = [](double x) { return fmt::format("{:.0f}", x); };
  std::vector<std::string> cells{count(report.values.count)};
  if (audit.has_events) cells.push_back(count(report.events));
  cells.push_back(count(report.missing()));
  const bool numbers = !report.range.empty();
  const double none = std::nan("");
  for (const double value :
       {numbers ? report.mean() : none, numbers ? report.deviation() : none,
        numbers ? report.range.least : none, numbers ? report.range.most : none, inflation}) {
    cells.push_back(cell(value));
  }
  return line_of(clipped(name), cells);
}

std::vector<std::pair<std::string, LevelReport>> by_frequency(const ColumnReport& report) {
  std::vector<std::pair<std::string, LevelReport>> out(report.levels.begin(), report.levels.end());
  std::ranges::stable_sort(
      out, [](const auto& a, const auto& b) { return a.second.rows > b.second.rows; });
  return out;
}

std::string level_lines(const TableAudit& audit, const ColumnReport& report) {
  std::string out;
  const auto levels = by_frequency(report);
  for (std::size_t i = 0; i < std::min(kMostLevels, levels.size()); ++i) {
    std::vector<std::string> cells{fmt::format("{:.0f}", levels[i].second.rows)};
    if (audit.has_events) cells.push_back(fmt::format("{:.0f}", levels[i].second.events));
    out += line_of(clipped("  = " + levels[i].first), cells);
  }
  if (levels.size() > kMostLevels) {
    out += fmt::format("  and {} more values\n", levels.size() - kMostLevels);
  }
  return out;
}

double inflation_of(const TableAudit& audit, const std::string& column) {
  const auto found =
      std::ranges::find(audit.inflation, column, [](const auto& pair) { return pair.first; });
  return found == audit.inflation.end() ? std::nan("") : found->second;
}

std::string column_name(const AuditColumn& column) {
  return column.use == ColumnUse::outcome ? column.name + " (outcome)" : column.name;
}

std::string client_title(const TableAudit& audit, const ClientAudit& client) {
  return fmt::format("\nclient {}: {:.0f} rows{}\n", shown(client.id), client.rows,
                     audit.has_events ? fmt::format(", {:.0f} events", client.events) : "");
}

std::vector<const ClientAudit*> chosen_clients(const TableAudit& audit, const AuditChoice& choice) {
  std::vector<const ClientAudit*> out;
  const bool wanted = choice.per_client || !choice.client.empty() || !choice.column.empty();
  if (!wanted) return out;
  if (audit.clients.empty()) {
    throw InputError(fmt::format(
        "data describe: columns of single clients must be at most {} in all, but are more",
        TableAudit::kMostCells));
  }
  std::vector<std::string_view> ids;
  for (const ClientAudit& client : audit.clients) {
    ids.push_back(client.id);
    if (choice.client.empty() || choice.client == client.id) out.push_back(&client);
  }
  if (out.empty()) throw InputError(unknown_name("client", choice.client, ids));
  return out;
}

// Place of the column that was chosen, or as many as there are.
std::size_t chosen_column(const TableAudit& audit, const AuditChoice& choice) {
  if (choice.column.empty()) return audit.columns.size();
  std::vector<std::string_view> names;
  for (std::size_t j = 0; j < audit.columns.size(); ++j) {
    names.push_back(audit.columns[j].name);
    if (audit.columns[j].name == choice.column) return j;
  }
  throw InputError(unknown_name("column", choice.column, names));
}

std::int64_t whole(double count) { return std::int64_t(count); }

Json json_number(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }

Json json_of(const TableAudit& audit, const AuditColumn& column, const ColumnReport& report) {
  Json json{{"column", column.name},
            {"use", column.use == ColumnUse::outcome    ? "outcome"
                    : column.use == ColumnUse::category ? "category"
                                                        : "number"},
            {"n", whole(report.values.count)},
            {"missing", whole(report.missing())}};
  if (audit.has_events) json["events"] = whole(report.events);
  if (column.use != ColumnUse::category) {
    json["mean"] = json_number(report.mean());
    json["sd"] = json_number(report.deviation());
    json["min"] = json_number(report.range.least);
    json["max"] = json_number(report.range.most);
    return json;
  }
  Json levels = Json::array();
  for (const auto& [value, level] : by_frequency(report)) {
    levels.push_back({{"value", value}, {"n", whole(level.rows)}});
    if (audit.has_events) levels.back()["events"] = whole(level.events);
  }
  json["levels"] = std::move(levels);
  return json;
}

}  // namespace

std::string audit_text(const TableAudit& audit, const AuditChoice& choice) {
  const std::size_t column = chosen_column(audit, choice);
  const std::vector<const ClientAudit*> clients = chosen_clients(audit, choice);
  std::string out =
      fmt::format("\nall clients: {:.0f} rows{}\n", audit.rows,
                  audit.has_events ? fmt::format(", {:.0f} events", audit.events) : "");
  out += heading_of(audit, !audit.inflation.empty());
  for (const AuditColumn& each : audit.columns) {
    out += report_line(audit, column_name(each), each.all, inflation_of(audit, each.name));
    out += level_lines(audit, each.all);
  }
  if (column < audit.columns.size()) {
    out += fmt::format("\ncolumn {}, client by client\n", shown(choice.column));
    out += heading_of(audit, false);
    for (const ClientAudit* client : clients) {
      out += report_line(audit, client->id, client->columns[column], std::nan(""));
    }
  } else {
    for (const ClientAudit* client : clients) {
      out += client_title(audit, *client) + heading_of(audit, false);
      for (std::size_t j = 0; j < audit.columns.size(); ++j) {
        out += report_line(audit, column_name(audit.columns[j]), client->columns[j], std::nan(""));
        out += level_lines(audit, client->columns[j]);
      }
    }
  }
  out += audit.findings.empty() ? "\nnothing was found to be wrong\n" : "\nfindings\n";
  for (const Finding& finding : audit.findings) {
    out += fmt::format("- {}{}\n", finding.refused ? "refused: " : "", to_text(finding));
  }
  return out;
}

Json audit_json(const TableAudit& audit, const AuditChoice& choice) {
  const std::size_t column = chosen_column(audit, choice);
  Json out{{"rows", whole(audit.rows)}};
  if (audit.has_events) out["events"] = whole(audit.events);
  Json columns = Json::array();
  for (const AuditColumn& each : audit.columns) {
    columns.push_back(json_of(audit, each, each.all));
    columns.back()["vif"] = json_number(inflation_of(audit, each.name));
  }
  out["columns"] = std::move(columns);
  const std::vector<const ClientAudit*> clients = chosen_clients(audit, choice);
  if (!clients.empty()) {
    Json list = Json::array();
    for (const ClientAudit* client : clients) {
      Json own{{"client", client->id}, {"rows", whole(client->rows)}};
      if (audit.has_events) own["events"] = whole(client->events);
      own["columns"] = Json::array();
      for (std::size_t j = 0; j < audit.columns.size(); ++j) {
        if (column < audit.columns.size() && j != column) continue;
        own["columns"].push_back(json_of(audit, audit.columns[j], client->columns[j]));
      }
      list.push_back(std::move(own));
    }
    out["clients"] = std::move(list);
  }
  Json findings = Json::array();
  for (const Finding& finding : audit.findings) {
    findings.push_back(
        {{"name", finding.name}, {"refused", finding.refused}, {"text", finding.text}});
  }
  out["findings"] = std::move(findings);
  return out;
}

}  // namespace fedep
