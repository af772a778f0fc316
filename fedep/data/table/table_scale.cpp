#include "fedep/data/table/table_scale.h"

#include <cmath>

#include "fedep/message/check.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

double mean_of(const ColumnSums& sums) { return sums.count > 0 ? sums.sum / sums.count : 0.0; }

ColumnScale scale_of(const ColumnSums& sums) {
  const double mean = mean_of(sums);
  const double variance = sums.count > 0 ? sums.squares / sums.count : 0.0;
  if (!std::isfinite(mean) || !std::isfinite(variance)) {
    throw InputError("a column's numbers must have a variance, but are too large for one");
  }
  // What rounding leaves of a column that does not vary.
  const double noise = 1e-26 * mean * mean;
  if (variance <= noise) return {mean, 1, false};
  return {mean, std::sqrt(variance)};
}

// Of the rows of both.
ColumnSums pooled(const ColumnSums& a, const ColumnSums& b) {
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  const double gap = mean_of(a) - mean_of(b), count = a.count + b.count;
  return {count, a.sum + b.sum, a.squares + b.squares + gap * gap * (a.count * b.count / count)};
}

CategoryScale scale_of(const std::map<std::string, std::size_t>& values) {
  CategoryScale out;
  double known = 0;
  std::size_t most = 0;
  for (const auto& [value, rows] : values) {
    known += double(rows);
    if (rows > most) {
      most = rows;
      out.baseline = value;
    }
  }
  for (const auto& [value, rows] : values) {
    if (value == out.baseline) continue;
    const double mean = double(rows) / known;  // of an indicator, which is its own square
    out.others.emplace_back(value, scale_of({known, double(rows), known * mean * (1 - mean)}));
  }
  return out;
}

float scaled(double value, const ColumnScale& scale) {
  return scale.varies ? float((value - scale.mean) / scale.deviation) : 0.f;
}

}  // namespace

ClientReport report(std::span<const TableRow> rows) {
  ClientReport out;
  if (rows.empty()) return out;
  out.numbers.resize(rows.front().numbers.size());
  out.categories.resize(rows.front().categories.size());
  for (const TableRow& row : rows) {
    check_same_size("report", "numbers", out.numbers.size(), row.numbers.size());
    check_same_size("report", "categories", out.categories.size(), row.categories.size());
    for (std::size_t j = 0; j < row.numbers.size(); ++j) {
      const double value = row.numbers[j];
      if (std::isnan(value)) continue;
      out.numbers[j].count += 1;
      out.numbers[j].sum += value;
    }
    for (std::size_t j = 0; j < row.categories.size(); ++j) {
      if (!row.categories[j].empty()) ++out.categories[j][row.categories[j]];
    }
  }
  for (std::size_t j = 0; j < out.numbers.size(); ++j) {
    const double mean = mean_of(out.numbers[j]);
    for (const TableRow& row : rows) {
      const double gap = row.numbers[j] - mean;
      if (!std::isnan(gap)) out.numbers[j].squares += gap * gap;
    }
  }
  return out;
}

TableScale pooled_scale(std::span<const ClientReport> reports) {
  ClientReport all;
  for (const ClientReport& client : reports) {
    const bool empty = client.numbers.empty() && client.categories.empty();
    if (empty) continue;
    if (all.numbers.empty() && all.categories.empty()) {
      all = client;
      continue;
    }
    check_same_size("pooled_scale", "numbers", all.numbers.size(), client.numbers.size());
    check_same_size("pooled_scale", "categories", all.categories.size(), client.categories.size());
    for (std::size_t j = 0; j < client.numbers.size(); ++j) {
      all.numbers[j] = pooled(all.numbers[j], client.numbers[j]);
    }
    for (std::size_t j = 0; j < client.categories.size(); ++j) {
      for (const auto& [value, rows] : client.categories[j]) all.categories[j][value] += rows;
    }
  }
  TableScale scale;
  for (const ColumnSums& sums : all.numbers) scale.numbers.push_back(scale_of(sums));
  for (const auto& values : all.categories) scale.categories.push_back(scale_of(values));
  return scale;
}

void encode(const TableRow& row, const TableScale& scale, std::vector<float>& out) {
  check_same_size("encode", "numbers", scale.numbers.size(), row.numbers.size());
  check_same_size("encode", "categories", scale.categories.size(), row.categories.size());
  for (std::size_t j = 0; j < row.numbers.size(); ++j) {
    const bool known = scale.numbers[j].allows(row.numbers[j]);
    out.push_back(known ? scaled(row.numbers[j], scale.numbers[j]) : 0.f);
  }
  for (std::size_t j = 0; j < row.categories.size(); ++j) {
    const CategoryScale& category = scale.categories[j];
    const std::string& came = row.categories[j];
    bool known = !came.empty() && came == category.baseline;
    for (const auto& other : category.others) known = known || came == other.first;
    for (const auto& [value, column] : category.others) {
      out.push_back(known ? scaled(came == value ? 1.0 : 0.0, column) : 0.f);
    }
  }
}

}  // namespace fedep
