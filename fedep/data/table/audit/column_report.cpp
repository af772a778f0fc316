#include "fedep/data/table/audit/column_report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace fedep {
namespace {

// See report_of. In the order of the file; none is missing.
bool look_like_names(const std::vector<double>& values, const ValueRange& range) {
  constexpr std::size_t kFewest = 8;
  constexpr double kMostEqual = 0.02, kSurprising = 9;
  const double count = double(values.size());
  const double places = range.most - range.least + 1;
  if (values.size() < kFewest || places < (1 - kMostEqual) * count) return false;
  std::size_t ascending = 0;
  for (std::size_t i = 1; i < values.size(); ++i) ascending += values[i] > values[i - 1];
  std::vector<double> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  const auto distinct = double(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
  if (distinct < (1 - kMostEqual) * count) return false;
  // Of numbers drawn from so few places no two are the same with a chance of exp(-n² / 2 places).
  const bool surprising = count * count > kSurprising * 2 * places;
  if (surprising || double(ascending) >= (1 - kMostEqual) * (count - 1)) return true;
  // Evenly spread numbers of five digits and more: mean and deviation are those of a uniform law.
  constexpr double kFiveDigits = 1e4, kUniform = 0.2887, kOff = 0.04;
  constexpr std::size_t kFewestSpread = 30;
  if (range.least < kFiveDigits || values.size() < kFewestSpread) return false;
  const ColumnSums sums = sums_of(values);
  const double middle = (sums.sum / sums.count - range.least) / places;
  const double deviation = std::sqrt(sums.squares / sums.count) / places;
  return std::fabs(middle - 0.5) < 2 * kOff && std::fabs(deviation - kUniform) < kOff;
}

}  // namespace

bool is_missing_code(double value) {
  // By size; those that are also plausible measurements count as codes only if they are negative.
  static constexpr std::array kAny = {777.0,   888.0,   999.0,   99.9,     999.9,    99.99,
                                      999.99,  7777.0,  8888.0,  9999.0,   9999.9,   9999.99,
                                      77777.0, 88888.0, 99999.0, 999999.0, 9999999.0};
  static constexpr std::array kNegative = {-1.0, -7.0, -8.0, -9.0, -77.0, -88.0, -9.9, -99.0};
  static constexpr double kPositive = 99.0;
  const auto has = [](const auto& list, double x) {
    return std::find(list.begin(), list.end(), x) != list.end();
  };
  return value == kPositive || has(kAny, std::fabs(value)) || has(kNegative, value);
}

double ColumnReport::mean() const {
  return values.count > 0 ? values.sum / values.count : std::numeric_limits<double>::quiet_NaN();
}

double ColumnReport::deviation() const {
  return values.count > 0 ? std::sqrt(values.squares / values.count)
                          : std::numeric_limits<double>::quiet_NaN();
}

ColumnReport report_of(std::span<const double> values, std::span<const double> events) {
  ColumnReport out{.rows = double(values.size())};
  std::vector<double> present;
  present.reserve(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double value = values[i];
    if (std::isnan(value)) continue;
    present.push_back(value);
    out.events += events[i];
    (events[i] > 0 ? out.with_events : out.without_events).take(value);
    out.whole = out.whole && value == std::floor(value);
  }
  out.range = out.with_events;
  out.range.take(out.without_events);
  out.values = sums_of(present);
  if (present.empty()) return out;
  if (out.whole && look_like_names(present, out.range)) out.names = out.values.count;
  if (!is_missing_code(out.range.least) && !is_missing_code(out.range.most)) {
    out.others = out.range;
    return out;
  }
  for (const double value : present) {
    if (is_missing_code(value)) {
      ++out.codes[value];
    } else {
      out.others.take(value);
    }
  }
  return out;
}

ColumnReport report_of(std::span<const std::string* const> values, std::span<const double> events) {
  ColumnReport out{.rows = double(values.size())};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i]->empty()) continue;
    LevelReport& level = out.levels[*values[i]];
    ++level.rows;
    level.events += events[i];
    ++out.values.count;
    out.events += events[i];
  }
  return out;
}

void add(ColumnReport& to, const ColumnReport& more) {
  to.rows += more.rows;
  ColumnSums& all = to.values;
  const ColumnSums& sums = more.values;
  if (all.count > 0 && sums.count > 0) {
    const double gap = all.sum / all.count - sums.sum / sums.count;
    all.squares += sums.squares + all.count * sums.count / (all.count + sums.count) * gap * gap;
  } else {
    all.squares += sums.squares;
  }
  all.count += sums.count;
  all.sum += sums.sum;
  to.range.take(more.range);
  to.events += more.events;
  to.with_events.take(more.with_events);
  to.without_events.take(more.without_events);
  to.whole = to.whole && more.whole;
  to.names += more.names;
  for (const auto& [code, rows] : more.codes) to.codes[code] += rows;
  to.others.take(more.others);
  for (const auto& [level, report] : more.levels) {
    LevelReport& own = to.levels[level];
    own.rows += report.rows;
    own.events += report.events;
  }
}

}  // namespace fedep
