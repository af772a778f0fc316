#include "fedep/data/table/table_features.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>

#include <fmt/format.h>

#include "fedep/data/table/row_encoder.h"
#include "fedep/data/table/table_record.h"
#include "fedep/data/table/term.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// What a prediction is made from: neither hospital nor outcome.
std::vector<std::string> columns_read(const TableSpec& spec) {
  std::vector<std::string> names = spec.numbers;
  names.insert(names.end(), spec.categories.begin(), spec.categories.end());
  for (const std::string& name : {spec.exposure_column, spec.start_column, spec.stop_column}) {
    if (!name.empty()) names.push_back(name);
  }
  return names;
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
  info.has_exposure = spec.has_exposure();
  return info;
}

EncodedTable encode_table(const DelimitedTable& table, const TableFeatures& features) {
  table.check_has(columns_read(features.spec));
  const FeatureParser parser(table, features.spec);
  const RowEncoder encoder(features.spec, features.scale);
  const std::vector<Term> terms = terms_of(features);
  const bool has_spells = features.spec.is_time_to_event();
  EncodedTable out;
  Batch& batch = out.batch;
  const auto leave_out = [&](std::size_t row, std::size_t column, std::string_view why) {
    const std::string& cell = table.rows[row][column];
    out.left_out.push_back({row, fmt::format("{} is {}, {}", shown(table.columns[column]),
                                             cell.empty() ? "empty" : shown(cell), why)});
  };
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const FeatureParser::Parsed parsed = parser.parse(table.rows[i]);
    if (parsed.bad) {
      const std::string& column = table.columns[*parsed.bad];
      leave_out(i, *parsed.bad,
                column == features.spec.exposure_column ? "which is no positive number"
                : has_spells && column == features.spec.stop_column
                    ? "which is no time after the spell's begin"
                    : "which is no number");
      continue;
    }
    const std::size_t first = batch.dense.size();
    const ScaledRow scaled = scaled_row(parsed.row, features.scale);
    encoder.encode(scaled, 0, batch.dense);
    const auto row = std::span(batch.dense).subspan(first);
    const auto wild = std::ranges::find_if_not(row, [](float x) { return std::isfinite(x); });
    if (wild != row.end()) {
      const Term& term = terms[std::size_t(wild - row.begin())];
      const Term& number = term.factors.empty() ? term : term.factors.front();
      leave_out(i, table.column(number.column), "which cannot be scaled");
      batch.dense.resize(first);
      continue;
    }
    if (has_spells) {
      batch.dense.resize(batch.dense.size() - terms.size());  // in whose place its pieces come
      append_pieces(encoder, scaled, parsed.row.start, parsed.row.stop, features.scale.cuts, batch);
    } else {
      if (features.spec.has_exposure()) {
        batch.log_exposure.push_back(float(std::log(parsed.row.exposure)));
      }
      ++batch.size;
    }
    out.rows.push_back(i);
    out.ends.push_back(batch.size);
  }
  return out;
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
