#include "fedep/data/table/unlike_rows.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "fedep/data/table/table_record.h"
#include "fedep/data/table/term.h"

namespace fedep {
namespace {

// 0 and 1, of which the rarer one may be far from the mean and is still common.
bool is_indicator(double value, const ColumnScale& column) {
  const double variance = column.deviation * column.deviation;
  return (value == 0 || value == 1) &&
         std::fabs(variance - column.mean * (1 - column.mean)) <= 1e-9 * variance;
}

// Numbers that a recipe leaves as they are have no mean and deviation here.
bool is_scaled(const ColumnScale& column) { return column.mean != 0 || column.deviation != 1; }

std::optional<UnlikeKind> kind_of(double value, const ColumnScale& column) {
  constexpr double kRounding = 1e-9;  // of a mean of equal numbers
  if (std::isnan(value)) return std::nullopt;
  if (!column.allows(value)) return UnlikeKind::limits;
  const double away = std::fabs(value - column.mean);
  if (!column.varies) {
    if (away > kRounding * std::fabs(column.mean)) return UnlikeKind::constant;
    return std::nullopt;
  }
  const bool is_far = is_scaled(column) && away > kFarDeviations * column.deviation;
  if (is_far && !is_indicator(value, column)) return UnlikeKind::far;
  return std::nullopt;
}

// The columns that each feature is made of; none for the intercept and for times.
std::vector<std::vector<std::string>> columns_of(const TableFeatures& features) {
  std::vector<std::vector<std::string>> out;
  for (const Term& term : terms_of(features)) {
    std::vector<std::string>& columns = out.emplace_back();
    if (!term.column.empty() && term.kind != TermKind::interval) columns.push_back(term.column);
    for (const Term& factor : term.factors) columns.push_back(factor.column);
  }
  return out;
}

// A product's square is half of either column.
void add_columns_far_together(std::span<const float> row,
                              std::span<const std::vector<std::string>> columns, double far,
                              std::vector<Unlike>& out) {
  double left = distance(row) * double(row.size());
  const double near = far * double(row.size());
  if (!(left > near)) return;
  std::map<std::string, double> squares;
  for (std::size_t j = 0; j < row.size(); ++j) {
    for (const std::string& column : columns[j]) {
      squares[column] += double(row[j]) * double(row[j]) / double(columns[j].size());
    }
  }
  std::vector<std::pair<double, std::string>> order;
  for (const auto& [column, square] : squares) order.emplace_back(-square, column);
  std::ranges::sort(order);
  for (const auto& [minus, column] : order) {
    if (!(left > near) || minus == 0) return;
    left += minus;
    const auto is_same = [&](const Unlike& other) { return other.column == column; };
    if (std::ranges::none_of(out, is_same)) out.push_back({column, UnlikeKind::together});
  }
}

}  // namespace

std::string_view word_of(UnlikeKind kind) {
  switch (kind) {
    case UnlikeKind::far:
      return "far from the mean";
    case UnlikeKind::category:
      return "new category";
    case UnlikeKind::constant:
      return "did not vary";
    case UnlikeKind::limits:
      return "taken as missing";
    case UnlikeKind::together:
      break;
  }
  return "far together";
}

std::vector<std::vector<Unlike>> unlike_rows(const DelimitedTable& table, const EncodedTable& rows,
                                             const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  const std::vector<std::vector<std::string>> columns = columns_of(features);
  const TableScale& scale = features.scale;
  std::vector<std::vector<Unlike>> out(rows.rows.size());
  for (std::size_t i = 0; i < out.size(); ++i) {
    const TableRow row = parser.parse(table.rows.at(rows.rows[i])).row;
    for (std::size_t j = 0; j < row.numbers.size(); ++j) {
      const auto kind = kind_of(row.numbers[j], scale.numbers.at(j));
      if (kind) out[i].push_back({features.spec.numbers[j], *kind});
    }
    for (std::size_t j = 0; j < row.categories.size(); ++j) {
      const std::string& value = row.categories[j];
      if (value.empty() || is_known(value, scale.categories.at(j))) continue;
      out[i].push_back({features.spec.categories[j], UnlikeKind::category});
    }
    const std::size_t example = rows.ends[i] - 1;  // of a spell the last piece
    add_columns_far_together(
        std::span(rows.batch.dense).subspan(example * columns.size(), columns.size()), columns,
        features.far, out[i]);
  }
  return out;
}

}  // namespace fedep
