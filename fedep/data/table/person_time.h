// Time to event as person-time: a row is a spell, from start to stop, that ended with the event or not. With
// a hazard that is constant between cuts,
//
//   h(t | x) = exp(intercept + x·beta + gamma_j)    for t in interval j,
//
// a spell's likelihood is that of Poisson counts: it is split at the cuts into pieces, each with its time at
// risk as exposure and a count of 0, or of 1 in the last piece of a spell that ended with the event. Ratios
// e^beta are hazard ratios.
//
//   const TimeGrid grid = common_grid(least, most);                  // of all clients' times
//   sum += event_counts(grid, times_of_own_events);                  // all that a client sends
//   const std::vector<double> cuts = cuts_of(grid, sum, 10);
//   for (const Piece& piece : pieces_of(start, stop, cuts)) …
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace fedep {

// Times (k - 1) step < t <= k step, with k from `first` on. The step is 1, 2 or 5 times a power of ten, so that
// whole days lie on the grid, and a quotient of whole numbers, so that they do to the last bit.
struct TimeGrid {
  double times = 1, over = 1;  // step = times / over
  double first = 0;
  std::size_t steps = 0;

  double at(double k) const { return k * times / over; }
  double end_of(std::size_t place) const { return at(first + double(place)); }
  std::size_t place_of(double time) const;

  bool operator==(const TimeGrid&) const = default;
};

// Of two to five thousand steps over the times from `least` to `most`.
TimeGrid common_grid(double least, double most);
// By step. Throws InputError for a time beyond the grid.
std::vector<double> event_counts(const TimeGrid& grid, std::span<const double> times);
// At quantiles of the events' times, so that about as many events are in each interval. Where events share
// their times there are fewer cuts than asked for, and an interval has at least one event.
std::vector<double> cuts_of(const TimeGrid& grid, std::span<const double> counts,
                            std::size_t intervals);

// The part of a spell in an interval. Interval j is (cuts[j - 1], cuts[j]], the first and the last without
// an end.
struct Piece {
  std::size_t interval = 0;
  double exposure = 0;  // time at risk

  bool operator==(const Piece&) const = default;
};

// At least one, in order; exposures add up to stop - start, which must be positive. The event, if there was
// one, is the last one's.
std::vector<Piece> pieces_of(double start, double stop, std::span<const double> cuts);

// A spell, and where its row is.
struct Spell {
  double start = 0, stop = 0;
  std::size_t place = 0;
};
// Two of one patient's spells that are at risk at the same time, the earlier row first; nothing: none are.
struct Overlap {
  Spell one = {}, other = {};
  bool there = false;
};
Overlap overlap_of(std::vector<Spell> spells);

}  // namespace fedep
