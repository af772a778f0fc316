#include "fedep/data/table/audit/audit_features.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/table/audit/collinearity.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::size_t kMostFeatures = 400;  // beyond which no cross-products are summed
constexpr double kMostWork = 1e9;  // products: of more rows every second, third, … is taken
constexpr double kWide = 10;       // inflation that is told

// Of the features and, as a last column, the outcome where it is a number.
CrossProducts products_of(const Batch& rows, std::size_t width) {
  CrossProducts out(width + (rows.reals.empty() ? 0 : 1));
  const double work = double(rows.size) * double(width) * double(width);
  const auto step = std::size_t(std::max(1.0, std::ceil(work / kMostWork)));
  std::vector<float> row;
  for (std::size_t i = 0; i < rows.size; i += step) {
    const auto features = std::span(rows.dense).subspan(i * width, width);
    row.assign(features.begin(), features.end());
    if (!rows.reals.empty()) row.push_back(rows.reals[i]);
    out.add(row);
  }
  return out;
}

void tell_collinear(const VarianceInflation& inflation, std::span<const std::string> names,
                    TableAudit& audit) {
  constexpr std::size_t kMostNamed = 4;
  for (const ExactDependence& exact : inflation.exact) {
    const bool is_copy = std::ranges::find(audit.copies, names[exact.column]) != audit.copies.end();
    if (is_copy && exact.others.size() == 1) continue;
    std::vector<std::string> others;
    for (const std::size_t other : exact.others) others.push_back(names[other]);
    audit.findings.push_back(
        {"collinear-columns", false,
         fmt::format(
             "{} follows exactly from {}: only the prior tells their coefficients apart; name "
             "one of them in data.drop",
             shown(names[exact.column]), shown_list(others, kMostNamed))});
  }
  std::vector<std::pair<double, std::size_t>> wide;
  for (std::size_t j = 0; j < names.size(); ++j) {
    const double factor = inflation.factors[j];
    if (factor > kWide && std::isfinite(factor)) wide.emplace_back(factor, j);
  }
  if (wide.empty()) return;
  std::ranges::sort(wide, std::greater<>());
  std::vector<std::string> parts;
  for (const auto& [factor, j] : wide) {
    if (parts.size() == 2 * kMostNamed) break;
    parts.push_back(fmt::format("{} {:.3g}", shown(names[j]), factor));
  }
  audit.findings.push_back(
      {"collinear-columns", false,
       fmt::format(
           "others say most of what {} feature{} say{}: variance inflation {}{}; intervals are "
           "wider by its square root, {:.2g} times, than if it stood alone",
           wide.size(), wide.size() == 1 ? "" : "s", wide.size() == 1 ? "s" : "",
           fmt::join(parts, ", "), wide.size() > parts.size() ? ", …" : "",
           std::sqrt(wide.front().first))});
}

}  // namespace

void audit_features(const Batch& train, const DatasetInfo& info, TableAudit& audit) {
  const std::size_t width = info.feature_names.size();
  const std::size_t coefficients = (width + 1) * (info.outputs > 1 ? info.outputs - 1 : 1);
  if (train.size > 0 && train.size < coefficients) {
    audit.findings.push_back(
        {"fewer-rows-than-coefficients", false,
         fmt::format("there are {} training rows for {} coefficients, at all clients together: the "
                     "prior decides most of them",
                     train.size, coefficients)});
  }
  if (width > kMostFeatures || train.size < 2) return;
  const CrossProducts products = products_of(train, width);
  if (const std::size_t outcome = width; !train.reals.empty() && products.varies(outcome)) {
    constexpr double kCopy = 1 - 1e-8;  // of a squared correlation
    for (std::size_t j = 0; j < width; ++j) {
      const double both = products.around_means(outcome, j);
      const double each = products.around_means(outcome, outcome) * products.around_means(j, j);
      if (!products.varies(j) || both * both < kCopy * each) continue;
      audit.findings.push_back(
          {"outcome-among-features", false,
           fmt::format("{} is the outcome in another unit: from it the outcome follows exactly",
                       shown(info.feature_names[j]))});
    }
  }
  // A row fewer than columns, and everything follows from everything.
  if (products.rows() <= double(width) + 1) return;
  const VarianceInflation inflation = variance_inflation(products.first(width));
  for (std::size_t j = 0; j < width; ++j) {
    audit.inflation.emplace_back(info.feature_names[j], inflation.factors[j]);
  }
  tell_collinear(inflation, info.feature_names, audit);
}

void find_constant_columns(const TableFeatures& features, std::vector<Finding>& findings) {
  constexpr std::size_t kMost = 8;
  const std::vector<std::string> names = constant_columns(features).names;
  if (names.empty()) return;
  findings.push_back({"constant-columns", false,
                      fmt::format("columns that have one value, or none, in all clients' training "
                                  "rows teach nothing and are not read: {}",
                                  shown_list(names, kMost))});
}

void find_left_out(const DatasetInfo& info, const std::string& by_client,
                   std::vector<Finding>& findings) {
  if (info.skipped_records == 0) return;
  findings.push_back(
      {"rows-left-out", false,
       fmt::format("{} bad records were left out{}{}{}", info.skipped_records,
                   info.first_skipped.empty() ? "" : "; the first: ", info.first_skipped,
                   by_client.empty() ? "" : fmt::format(" ({})", by_client))});
}

}  // namespace fedep
