#include "fedep/data/table/person_time.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr double kFewestSteps = 2000;

}  // namespace

std::size_t TimeGrid::place_of(double time) const {
  double k = std::ceil(time / times * over);
  // What rounding does to times that lie on the grid.
  if (at(k - 1) >= time) --k;
  if (at(k) < time) ++k;
  if (!(k >= first) || !(k < first + double(steps))) {
    fail("event_counts", "time",
         fmt::format("on the grid from {} to {}", at(first), at(first + double(steps) - 1)),
         fmt::format("{}", time));
  }
  return std::size_t(k - first);
}

TimeGrid common_grid(double least, double most) {
  check_finite("common_grid", "least", least);
  check_finite("common_grid", "most", most);
  const double range = most - least;
  check_positive("common_grid", "range of times", range);
  // The largest step that leaves enough of them.
  const double power = std::floor(std::log10(range / kFewestSteps));
  const double tens = std::pow(10.0, std::fabs(power));
  TimeGrid grid{.times = power > 0 ? tens : 1, .over = power > 0 ? 1 : tens};
  for (const double more : {5.0, 2.0}) {
    if (range / more >= kFewestSteps * grid.at(1)) {
      grid.times *= more;
      break;
    }
  }
  grid.first = std::floor(least / grid.times * grid.over);
  grid.steps = std::size_t(std::ceil(most / grid.times * grid.over) - grid.first) + 2;
  return grid;
}

std::vector<double> event_counts(const TimeGrid& grid, std::span<const double> times) {
  std::vector<double> counts(grid.steps);
  for (const double time : times) ++counts[grid.place_of(time)];
  return counts;
}

std::vector<double> cuts_of(const TimeGrid& grid, std::span<const double> counts,
                            std::size_t intervals) {
  const double all = std::accumulate(counts.begin(), counts.end(), 0.0);
  std::vector<double> cuts;
  double before = 0;
  std::size_t next = 1;  // the quantile that is looked for
  for (std::size_t place = 0; place < counts.size() && next < intervals; ++place) {
    before += counts[place];
    if (before * double(intervals) < all * double(next) || before >= all) continue;
    cuts.push_back(grid.end_of(place));
    while (next < intervals && before * double(intervals) >= all * double(next)) ++next;
  }
  return cuts;
}

std::vector<Piece> pieces_of(double start, double stop, std::span<const double> cuts) {
  if (!(stop > start)) {
    fail("pieces_of", "stop", fmt::format("after {}", start), fmt::format("{}", stop));
  }
  std::vector<Piece> out;
  auto interval = std::size_t(std::upper_bound(cuts.begin(), cuts.end(), start) - cuts.begin());
  for (double from = start; from < stop; ++interval) {
    const double to = interval < cuts.size() ? std::min(stop, cuts[interval]) : stop;
    out.push_back({interval, to - from});
    from = to;
  }
  return out;
}

Overlap overlap_of(std::vector<Spell> spells) {
  std::ranges::stable_sort(spells, {}, &Spell::start);
  Spell latest;  // that has begun and ends last
  for (std::size_t i = 0; i < spells.size(); ++i) {
    if (i > 0 && spells[i].start < latest.stop) {
      Overlap out{.one = latest, .other = spells[i], .there = true};
      if (out.other.place < out.one.place) std::swap(out.one, out.other);
      return out;
    }
    if (i == 0 || spells[i].stop > latest.stop) latest = spells[i];
  }
  return {};
}

}  // namespace fedep
