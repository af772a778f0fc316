#include "fedep/data/table/table_features.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/table/row_encoder.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/term.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// "; lines 5, 9 and 12 others are bad too" of all lines but the first, or nothing.
std::string also_bad(std::span<const std::size_t> lines) {
  constexpr std::size_t kMost = 8;
  const auto others = lines.subspan(1);
  if (others.empty()) return {};
  const auto named = others.first(std::min(kMost, others.size()));
  const std::size_t more = others.size() - named.size();
  return fmt::format("; {} {}{} {} bad too", others.size() > 1 ? "lines" : "line",
                     fmt::join(named, ", "), more > 0 ? fmt::format(" and {} others", more) : "",
                     others.size() > 1 ? "are" : "is");
}

}  // namespace

bool prepare_alike(const TableFeatures& a, const TableFeatures& b) {
  const auto by_column = [](const ColumnScale& x, const ColumnScale& y) {
    constexpr double kRounding = 1e-9;
    const auto near = [&](double one, double other) {
      return one == other ||
             std::fabs(one - other) <= kRounding * (std::fabs(x.mean) + x.deviation);
    };
    return x.varies == y.varies && near(x.mean, y.mean) && near(x.low, y.low) &&
           near(x.high, y.high) && std::fabs(x.deviation - y.deviation) <= kRounding * x.deviation;
  };
  const auto by_value = [&](const auto& x, const auto& y) {
    return x.first == y.first && by_column(x.second, y.second);
  };
  const auto by_category = [&](const CategoryScale& x, const CategoryScale& y) {
    return x.baseline == y.baseline && std::ranges::equal(x.others, y.others, by_value);
  };
  const auto by_columns = [&](const auto& x, const auto& y) {
    return std::ranges::equal(x, y, by_column);
  };
  const auto by_cut = [](double x, double y) { return std::fabs(x - y) <= 1e-9 * std::fabs(x); };
  return a.spec == b.spec && a.output_names == b.output_names &&
         std::ranges::equal(a.scale.numbers, b.scale.numbers, by_column) &&
         std::ranges::equal(a.scale.categories, b.scale.categories, by_category) &&
         std::ranges::equal(a.scale.missing, b.scale.missing, by_column) &&
         std::ranges::equal(a.scale.products, b.scale.products, by_columns) &&
         std::ranges::equal(a.scale.intervals, b.scale.intervals, by_column) &&
         std::ranges::equal(a.scale.cuts, b.scale.cuts, by_cut);
}

DatasetInfo info_of(const TableFeatures& features) {
  const TableSpec& spec = features.spec;
  DatasetInfo info{.name = features.data,
                   .features = {},
                   .target = spec.target,
                   .outputs = spec.target == TargetKind::label ? features.output_names.size() : 1,
                   .feature_names = {},
                   .output_names = features.output_names};
  for (Term& term : terms_of(features)) info.feature_names.push_back(std::move(term.name));
  info.features = {std::int64_t(info.feature_names.size())};
  info.has_exposure = !spec.exposure_column.empty();
  return info;
}

Batch encode_table(const DelimitedTable& table, const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  if (table.bad_records > 0) {
    throw InputError(fmt::format(
        "{}:{}: record must have {} fields, quoted as CSV is, but has not{}", table.source,
        table.first_bad_line, table.columns.size(),
        table.bad_records > 1 ? fmt::format("; {} records are so", table.bad_records) : ""));
  }
  if (table.rows.empty()) {
    throw InputError(fmt::format("{}: expected rows, but there is only a header", table.source));
  }
  const RowEncoder encoder(features.spec, features.scale);
  const std::vector<Term> terms = terms_of(features);
  Batch out;
  std::vector<std::size_t> bad_lines;
  std::string first_problem;
  const auto refuse_later = [&](std::size_t row, std::size_t column, std::string_view expected) {
    if (bad_lines.empty()) {
      first_problem = fmt::format("column {} must be {}, but is {}", shown(table.columns[column]),
                                  expected, shown(table.rows[row][column]));
    }
    bad_lines.push_back(table.lines.at(row));
  };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const FeatureParser::Parsed parsed = parser.parse(table.rows[i]);
    if (parsed.bad) {
      const bool exposure = table.columns[*parsed.bad] == features.spec.exposure_column;
      refuse_later(i, *parsed.bad, exposure ? "a positive number" : "a number");
      continue;
    }
    if (!features.spec.exposure_column.empty()) {
      out.log_exposure.push_back(float(std::log(parsed.row.exposure)));
    }
    const std::size_t first = out.dense.size();
    encoder.encode(scaled_row(parsed.row, features.scale), 0, out.dense);
    for (std::size_t j = 0; j < terms.size(); ++j) {
      if (std::isfinite(out.dense[first + j])) continue;
      const Term& term = terms[j].factors.empty() ? terms[j] : terms[j].factors.front();
      refuse_later(i, table.column(term.column), "a number that can be scaled");
      break;
    }
    ++out.size;
  }
  if (!bad_lines.empty()) {
    throw InputError(fmt::format("{}:{}: {}{}", table.source, bad_lines.front(), first_problem,
                                 also_bad(bad_lines)));
  }
  return out;
}

std::vector<std::size_t> lines_with_new_categories(const DelimitedTable& table,
                                                   const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  std::vector<std::size_t> lines;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TableRow row = parser.parse(table.rows[i]).row;
    for (std::size_t j = 0; j < row.categories.size(); ++j) {
      const std::string& value = row.categories[j];
      if (value.empty() || is_known(value, features.scale.categories.at(j))) continue;
      lines.push_back(table.lines.at(i));
      break;
    }
  }
  return lines;
}

ConstantColumns constant_columns(const TableFeatures& features) {
  ConstantColumns out;
  const std::vector<Term> terms = terms_of(features);
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].varies) continue;
    out.names.push_back(terms[i].name);
    out.features.push_back(i);
  }
  const std::vector<CategoryScale>& categories = features.scale.categories;
  for (std::size_t j = 0; j < categories.size(); ++j) {
    if (categories[j].others.empty()) out.names.push_back(features.spec.categories.at(j));
  }
  return out;
}

std::vector<std::size_t> rows_off_constants(const DelimitedTable& table,
                                            const TableFeatures& features) {
  const FeatureParser parser(table, features.spec);
  const auto is_off = [](double value, const ColumnScale& column) {
    constexpr double kRounding = 1e-9;  // of a mean of equal numbers
    if (value < column.low || value > column.high) return true;
    return !column.varies && std::fabs(value - column.mean) > kRounding * std::fabs(column.mean);
  };
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TableRow row = parser.parse(table.rows[i]).row;
    if (std::ranges::equal(row.numbers, features.scale.numbers, std::not_fn(is_off))) continue;
    rows.push_back(i);
  }
  return rows;
}

double distance(std::span<const float> features) {
  double sum = 0;
  for (const float x : features) sum += double(x) * double(x);
  return sum / double(features.size());
}

double quantile(std::vector<double> values, double part) {
  if (values.empty()) return std::numeric_limits<double>::quiet_NaN();
  std::sort(values.begin(), values.end());
  const double place = std::ceil(part * double(values.size()));
  return values[std::size_t(std::clamp(place, 1.0, double(values.size()))) - 1];
}

}  // namespace fedep
