#include "fedep/data/table/row_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fedep/data/table/person_time.h"
#include "fedep/message/check.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr float kMissing = std::numeric_limits<float>::quiet_NaN();

}  // namespace

RowEncoder::RowEncoder(const TableSpec& spec, const TableScale& scale)
    : spec_(spec), scale_(scale) {
  for (const std::string& name : spec.missing_indicators) missing_.push_back(column(name));
  for (const auto& [first, second] : spec.interactions) {
    factors_.emplace_back(column(first), column(second));
  }
}

RowEncoder::Column RowEncoder::column(const std::string& name) const {
  const auto number = std::ranges::find(spec_.numbers, name);
  if (number != spec_.numbers.end()) {
    return {true, std::size_t(number - spec_.numbers.begin())};
  }
  const auto category = std::ranges::find(spec_.categories, name);
  if (category == spec_.categories.end()) {
    fail("a term", fmt::format("column {}", shown(name)), "a feature", "none");
  }
  return {false, std::size_t(category - spec_.categories.begin())};
}

// A number, or one for each level but the reference.
void RowEncoder::append_values(const ScaledRow& row, const Column& column,
                               std::vector<float>& out) const {
  if (column.is_number) {
    out.push_back(row.numbers[column.index]);
    return;
  }
  const CategoryScale& category = scale_.categories[column.index];
  const std::string& value = *row.categories[column.index];
  const std::size_t first = out.size();
  fedep::encode(value, category, out);
  if (!is_known(value, category))
    std::fill(out.begin() + std::ptrdiff_t(first), out.end(), kMissing);
}

bool RowEncoder::is_missing(const ScaledRow& row, std::size_t indicator) const {
  const Column& column = missing_[indicator];
  return column.is_number ? std::isnan(row.numbers[column.index])
                          : row.categories[column.index]->empty();
}

void RowEncoder::products(const ScaledRow& row, std::size_t interaction,
                          std::vector<double>& out) const {
  thread_local std::vector<float> first, second;
  first.clear();
  second.clear();
  append_values(row, factors_[interaction].first, first);
  append_values(row, factors_[interaction].second, second);
  out.clear();
  for (const float a : first) {
    for (const float b : second) out.push_back(double(a) * double(b));
  }
}

void RowEncoder::encode(const ScaledRow& row, std::size_t interval, std::vector<float>& out) const {
  if (spec_.intercept) out.push_back(1.f);
  for (const float number : row.numbers) out.push_back(std::isnan(number) ? 0.f : number);
  for (std::size_t j = 0; j < row.categories.size(); ++j) {
    fedep::encode(*row.categories[j], scale_.categories[j], out);
  }
  for (std::size_t j = 0; j < missing_.size(); ++j) {
    out.push_back(encoded(is_missing(row, j) ? 1 : 0, scale_.missing[j]));
  }
  thread_local std::vector<double> made;
  for (std::size_t j = 0; j < factors_.size(); ++j) {
    products(row, j, made);
    for (std::size_t i = 0; i < made.size(); ++i) {
      out.push_back(encoded(made[i], scale_.products[j][i]));
    }
  }
  for (std::size_t j = 0; j < scale_.intervals.size(); ++j) {
    out.push_back(encoded(interval == j + 1 ? 1 : 0, scale_.intervals[j]));
  }
}

void append_pieces(const RowEncoder& encoder, const ScaledRow& row, double start, double stop,
                   std::span<const double> cuts, Batch& to) {
  for (const Piece& piece : pieces_of(start, stop, cuts)) {
    encoder.encode(row, piece.interval, to.dense);
    to.log_exposure.push_back(float(std::log(piece.exposure)));
    ++to.size;
  }
}

ScaledRow scaled_row(const TableRow& row, const TableScale& scale) {
  check_same_size("scaled_row", "numbers", scale.numbers.size(), row.numbers.size());
  check_same_size("scaled_row", "categories", scale.categories.size(), row.categories.size());
  ScaledRow out;
  for (std::size_t j = 0; j < row.numbers.size(); ++j) {
    const bool is_there = scale.numbers[j].allows(row.numbers[j]);
    out.numbers.push_back(is_there ? encoded(row.numbers[j], scale.numbers[j]) : kMissing);
  }
  for (const std::string& value : row.categories) out.categories.push_back(&value);
  return out;
}

}  // namespace fedep
