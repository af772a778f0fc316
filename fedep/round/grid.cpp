#include "fedep/round/grid.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "fedep/message/check.h"
#include "fedep/round/grid_pieces.h"

namespace fedep {
namespace {

double largest_magnitude(std::span<const float> x) {
  float largest = 0;
  for (const float v : x) largest = std::max(largest, std::fabs(v));
  return largest;
}

// Headroom above the last aggregate, in bits. 64-bit integers have 39 bits more than a float's
// mantissa, so plenty is free; with 32 bits every bit of headroom is a bit of resolution.
int headroom_bits(int bits) { return bits == 64 ? 16 : 4; }

// The smallest exponent e with bound <= limit·2^e.
int exponent_for(double bound, std::int64_t limit) {
  int exponent = 0;
  const double mantissa = std::frexp(bound / double(limit), &exponent);
  return mantissa == 0.5 ? exponent - 1 : exponent;
}

// What one coordinate of one client's delta may reach when no clip norm bounds it: headroom above
// the largest of the last aggregate, which is never taken for less than a small part of q itself:
// clients that have converged say little about one that was never asked. 64 bits can afford 16
// times q.
double bound_from(double last, double global, int bits) {
  const double least = std::ldexp(global, bits == 64 ? -12 : -20);
  const double reference = last > 0 ? std::max(last, least) : global;
  return std::ldexp(reference > 0 ? reference : 1.0, headroom_bits(bits));
}

// std::nearbyint in the default rounding mode, without calling the library for every number: 2^52
// is where doubles stop having fractions, so adding it rounds, ties to even.
double nearest_integer(double x) {
  constexpr double kNoFractions = 4503599627370496.0;
  const double magnitude = std::fabs(x);
  const double rounded = (magnitude + kNoFractions) - kNoFractions;
  return magnitude < kNoFractions ? std::copysign(rounded, x) : x;
}

// x rounded to the nearest integers, if all of them are below 2^51: there adding 1.5·2^52 rounds,
// ties to even, and leaves the integer in the low bits. Half of what a round spends on a grid is
// saved by it, for numbers that nearly always are so small.
template <std::size_t kCount>
bool round_small(const float* from, double scale, std::int64_t* to) {
  constexpr double kRounds = 6755399441055744.0, kSmall = 2251799813685248.0;
  std::array<double, kCount> units;
  for (std::size_t i = 0; i < kCount; ++i) units[i] = double(from[i]) * scale;
  std::int64_t outside = 0;  // vectorises where a bool would not
  for (std::size_t i = 0; i < kCount; ++i)
    outside |= -std::int64_t(!(std::fabs(units[i]) < kSmall));
  if (outside != 0) return false;
  for (std::size_t i = 0; i < kCount; ++i) {
    to[i] = std::bit_cast<std::int64_t>(units[i] + kRounds) - std::bit_cast<std::int64_t>(kRounds);
  }
  return true;
}

bool round_all(std::span<const float> from, double scale, std::int64_t limit,
               std::vector<std::int64_t>& to) {
  constexpr std::size_t kChunk = 64;
  to.resize(from.size());
  double bound = double(limit);
  if (std::int64_t(bound) > limit) bound = std::nextafter(bound, 0.0);  // a limit that is no double
  const bool small_is_inside = bound >= 0x1p51;
  bool inside = true;
  for (std::size_t begin = 0; begin < from.size(); begin += kChunk) {
    const std::size_t end = std::min(begin + kChunk, from.size());
    if (small_is_inside && end - begin == kChunk &&
        round_small<kChunk>(from.data() + begin, scale, to.data() + begin)) {
      continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      const double units = nearest_integer(double(from[i]) * scale);
      const bool fits = std::fabs(units) <= bound;  // false for NaN
      inside &= fits;
      to[i] = std::int64_t(fits ? units : 0.0);
    }
  }
  return inside;
}

HostVector<float> scaled(const std::vector<std::int64_t>& from, int exponent) {
  HostVector<float> to(from.size());
  scale_units(from, exponent, to.span());
  return to;
}

}  // namespace

Magnitudes magnitudes(const Message& message) {
  return {.eta = largest_magnitude(message.eta().span()),
          .lambda = largest_magnitude(message.lambda_span())};
}

Grid choose_grid(const GridState& state, const GridChoice& choice, const Message& global) {
  return choose_grid(state, choice, choice.clip > 0 ? Magnitudes{} : magnitudes(global));
}

Grid choose_grid(const GridState& state, const GridChoice& choice, const Magnitudes& global) {
  if (choice.bits != 64 && choice.bits != 32) {
    fail("choose_grid", "bits", "64 or 32", fmt::format("{}", choice.bits));
  }
  check_positive("choose_grid", "clients asked", double(choice.asked));
  check_positive("choose_grid", "scale", choice.scale);
  Grid grid{.bits = choice.bits};
  // Half of what the signed integer holds: the sum of all clients is then far from wrapping round.
  const std::int64_t capacity = std::int64_t(1) << (choice.bits - 2);
  grid.limit = capacity / std::int64_t(choice.asked);
  check_positive("choose_grid", "units per client", double(grid.limit));
  if (choice.clip > 0) {
    // The float that is rounded may exceed clip·scale by its own rounding: one bit more.
    grid.eta_exponent = exponent_for(2 * choice.clip * choice.scale, grid.limit);
    grid.lambda_exponent = grid.eta_exponent;
  } else {
    grid.eta_exponent =
        exponent_for(bound_from(state.largest_eta, global.eta, choice.bits), grid.limit);
    grid.lambda_exponent =
        exponent_for(bound_from(state.largest_lambda, global.lambda, choice.bits), grid.limit);
  }
  grid.eta_exponent += state.extra_bits;
  grid.lambda_exponent += state.extra_bits;
  return grid;
}

GridState next_grid_state(const GridState& state, const Message& total, std::size_t refused,
                          int bits) {
  return next_grid_state(state, magnitudes(total), refused, bits);
}

GridState next_grid_state(const GridState& state, const Magnitudes& total, std::size_t refused,
                          int bits) {
  return {.largest_eta = total.eta,
          .largest_lambda = total.lambda,
          .extra_bits = refused > 0 ? state.extra_bits + headroom_bits(bits) : 0};
}

std::optional<GridDelta> to_grid(const Grid& grid, const Message& delta, double scale) {
  GridDelta out{.family = delta.family(), .eta = {}, .lambda = {}};
  const bool inside =
      round_all(delta.eta().span(), std::ldexp(scale, -grid.eta_exponent), grid.limit, out.eta) &
      round_all(delta.lambda_span(), std::ldexp(scale, -grid.lambda_exponent), grid.limit,
                out.lambda);
  if (!inside) return std::nullopt;
  return out;
}

bool is_too_coarse(const Grid& grid, double norm, std::size_t numbers) {
  constexpr double kMostLost = 0.1;
  const double unit = std::ldexp(1.0, std::max(grid.eta_exponent, grid.lambda_exponent));
  const double lost = unit * std::sqrt(double(numbers) / 12);  // rounding errors are uniform
  return norm > 0 && lost > kMostLost * norm;
}

double largest_clip(int bits, std::size_t asked, double least) {
  return least * std::ldexp(1.0, bits - 3) / double(std::max<std::size_t>(asked, 1));
}

Message from_grid(const Grid& grid, const GridDelta& delta) {
  return message_of(delta.family, scaled(delta.eta, grid.eta_exponent),
                    scaled(delta.lambda, grid.lambda_exponent));
}

void scale_units(std::span<const std::int64_t> units, int exponent, std::span<float> out) {
  const double unit = std::ldexp(1.0, exponent);
  for (std::size_t i = 0; i < units.size(); ++i) out[i] = float(double(units[i]) * unit);
}

Message message_of(Family family, HostVector<float> eta, HostVector<float> lambda) {
  if (family == Family::isotropic) return {std::move(eta), lambda[0]};
  if (family == Family::full) {
    return {std::move(eta), Packed<HostVector<float>>{std::move(lambda)}};
  }
  return {std::move(eta), std::move(lambda)};
}

}  // namespace fedep
