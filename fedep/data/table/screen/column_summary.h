// What a client tells of one column of its table before a scale is agreed on: a handful of numbers,
// by which others see whether its values can be of the same kind as theirs (column_screen.h).
//
// Quantiles of a few rows are the rows: a client with fewer than kRowsForQuantiles values sends none.
#pragma once

#include <array>
#include <cstddef>
#include <span>

namespace fedep {

inline constexpr std::size_t kRowsForQuantiles = 20;
inline constexpr std::array<double, 5> kSummaryParts = {0.1, 0.25, 0.5, 0.75, 0.9};

struct ColumnSummary {
  double count = 0;  // of values that are not missing
  double mean = 0;
  double deviation = 0;
  double least = 0;
  double most = 0;
  bool has_quantiles = false;
  std::array<double, 5> quantiles = {};  // at kSummaryParts

  bool varies() const { return most > least; }
  // Nothing but least and most: only then is the variance (most - mean)(mean - least).
  bool has_two_values() const;
  // Its own quantiles, or those of a Gaussian with its mean and deviation, within its extremes.
  std::array<double, 5> spread_out() const;

  bool operator==(const ColumnSummary&) const = default;
};

// Of a client's values without those that are missing; puts them in order.
ColumnSummary summary_of(std::span<double> values);

}  // namespace fedep
