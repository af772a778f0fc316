#include "fedep/data/table/table_scale.h"

#include <algorithm>
#include <cmath>

#include "fedep/message/check.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

double mean_of(const ColumnSums& sums) { return sums.count > 0 ? sums.sum / sums.count : 0.0; }

// Of the rows of both.
ColumnSums pooled(const ColumnSums& a, const ColumnSums& b) {
  if (a.count == 0 || b.count == 0) return a.count == 0 ? b : a;
  const double gap = mean_of(a) - mean_of(b), count = a.count + b.count;
  return {count, a.sum + b.sum, a.squares + b.squares + gap * gap * (a.count * b.count / count)};
}

float scaled(double value, const ColumnScale& scale) {
  return scale.varies ? float((value - scale.mean) / scale.deviation) : 0.f;
}

}  // namespace

ColumnSums sums_of(std::span<const double> values) {
  ColumnSums out{.count = double(values.size())};
  for (const double value : values) out.sum += value;
  const double mean = mean_of(out);
  for (const double value : values) out.squares += (value - mean) * (value - mean);
  return out;
}

ColumnSums pooled(std::span<const ColumnSums> clients) {
  ColumnSums out;
  for (const ColumnSums& client : clients) out = pooled(out, client);
  return out;
}

ClientReport report(std::span<const TableRow> rows) {
  ClientReport out;
  if (rows.empty()) return out;
  out.numbers.resize(rows.front().numbers.size());
  out.categories.resize(rows.front().categories.size());
  for (const TableRow& row : rows) {
    check_same_size("report", "numbers", out.numbers.size(), row.numbers.size());
    check_same_size("report", "categories", out.categories.size(), row.categories.size());
    for (std::size_t j = 0; j < row.categories.size(); ++j) {
      if (!row.categories[j].empty()) ++out.categories[j][row.categories[j]];
    }
  }
  std::vector<double> values;
  for (std::size_t j = 0; j < out.numbers.size(); ++j) {
    values.clear();
    for (const TableRow& row : rows) {
      if (!std::isnan(row.numbers[j])) values.push_back(row.numbers[j]);
    }
    out.numbers[j] = sums_of(values);
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

ColumnScale share_scale(double ones, double rows) {
  const double mean = rows > 0 ? ones / rows : 0.0;  // of an indicator, which is its own square
  return scale_of({rows, ones, rows * mean * (1 - mean)});
}

CategoryScale scale_of(const std::map<std::string, std::size_t>& rows_by_value,
                       const std::string& reference) {
  CategoryScale out{.baseline = reference, .others = {}};
  double known = 0;
  std::size_t most = 0;
  for (const auto& [value, rows] : rows_by_value) {
    known += double(rows);
    if (rows > most && reference.empty()) {
      most = rows;
      out.baseline = value;
    }
  }
  for (const auto& [value, rows] : rows_by_value) {
    if (value == out.baseline) continue;
    out.others.emplace_back(value, share_scale(double(rows), known));
  }
  return out;
}

float encoded(double value, const ColumnScale& scale) {
  return scale.allows(value) ? scaled(value, scale) : 0.f;
}

bool is_known(const std::string& value, const CategoryScale& scale) {
  if (value.empty()) return false;
  const auto has_value = [&](const auto& other) { return other.first == value; };
  return value == scale.baseline || std::ranges::any_of(scale.others, has_value);
}

void encode(const std::string& value, const CategoryScale& scale, std::vector<float>& out) {
  const bool known = is_known(value, scale);
  for (const auto& [other, column] : scale.others) {
    out.push_back(known ? scaled(value == other ? 1.0 : 0.0, column) : 0.f);
  }
}

void encode(const TableRow& row, const TableScale& scale, std::vector<float>& out) {
  check_same_size("encode", "numbers", scale.numbers.size(), row.numbers.size());
  check_same_size("encode", "categories", scale.categories.size(), row.categories.size());
  for (std::size_t j = 0; j < row.numbers.size(); ++j) {
    out.push_back(encoded(row.numbers[j], scale.numbers[j]));
  }
  for (std::size_t j = 0; j < row.categories.size(); ++j) {
    encode(row.categories[j], scale.categories[j], out);
  }
}

}  // namespace fedep
