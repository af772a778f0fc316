// The fixed-point grid on which deltas are summed. Float addition depends on its order; integer
// addition does not. A client rounds its weighted, clipped and damped delta once to multiples of
// 2^exponent, the server adds int64 exactly: any order, any grouping, any number of workers, masked
// or not, the sum has the same bits.
//
//   const Grid grid = choose_grid(state, {.clip = 100, .scale = 1.0 / 20, .asked = 20, .bits = 64}, global);
//   if (const auto rounded = to_grid(grid, delta, 1.0 / 20)) send(*rounded); else report_outside_grid();
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/message/layout.h"

namespace fedep {

// Announced with every round's task.
struct Grid {
  int eta_exponent = 0;  // one unit is 2^exponent
  int lambda_exponent = 0;
  int bits = 64;           // of an integer on the wire, 64 or 32; the round's sum fits into as many
  std::int64_t limit = 0;  // most units a client may send: 2^(bits-2) / clients asked

  bool operator==(const Grid&) const = default;
};

// A delta on the grid. lambda has as many elements as lambda_size() says.
struct GridDelta {
  Family family = Family::isotropic;
  std::vector<std::int64_t> eta;
  std::vector<std::int64_t> lambda;
  // Coordinates that these are of, ascending and disjoint, where all others are 0; empty: all.
  std::vector<Range> where = {};

  bool operator==(const GridDelta&) const = default;
};

// What the server remembers between rounds to choose the next grid; part of a checkpoint.
struct GridState {
  double largest_eta = 0;  // magnitude in the last aggregate, 0 before the first
  double largest_lambda = 0;
  int extra_bits = 0;  // coarser by so many bits because deltas were refused

  bool operator==(const GridState&) const = default;
};

struct GridChoice {
  double clip = 0;   // limit of the joint norm before weight and damping, 0 = none
  double scale = 1;  // largest weight × damping of any client asked
  std::size_t asked = 1;
  int bits = 64;
};

// Largest magnitudes in a message; NaN are passed over.
struct Magnitudes {
  double eta = 0;
  double lambda = 0;
};
Magnitudes magnitudes(const Message& message);

// From the clip norm where there is one, else from the last aggregate (before the first: from q)
// with headroom.
Grid choose_grid(const GridState& state, const GridChoice& choice, const Magnitudes& global);
Grid choose_grid(const GridState& state, const GridChoice& choice, const Message& global);

// The state after a round whose aggregate was `total` and in which `refused` deltas were outside
// the grid.
GridState next_grid_state(const GridState& state, const Magnitudes& total, std::size_t refused,
                          int bits);
GridState next_grid_state(const GridState& state, const Message& total, std::size_t refused,
                          int bits);

// scale × delta rounded to the nearest multiples (ties to even); nothing if any is outside the grid
// or not finite.
std::optional<GridDelta> to_grid(const Grid& grid, const Message& delta, double scale);

// Whether a delta whose joint norm is `norm`, after scale, and that has so many numbers is lost in
// rounding: more than a tenth of it is, where all its numbers are alike.
bool is_too_coarse(const Grid& grid, double norm, std::size_t numbers);

// The most that a clip norm can be before the grid made of it has a unit of `least` in deltas, before
// weight and damping: what is smaller would be rounded away.
double largest_clip(int bits, std::size_t asked, double least);

// What was really sent: the delta to move one's own factor by, and, for the sum, the aggregate.
Message from_grid(const Grid& grid, const GridDelta& delta);

}  // namespace fedep
