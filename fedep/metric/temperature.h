// One number that makes probabilities honest: p_T ∝ p^(1/T). Whoever has examples adds up their
// losses on a grid of temperatures; of all these sums one temperature is made. A sum is convex in
// 1/T, so it has one minimum, and between the points of the grid a parabola finds it. A temperature
// that examples cannot tell from 1 is 1: a few dozen fit noise, and make probabilities worse.
//
//   TemperatureLosses losses;
//   losses.add_classes(probabilities, classes, labels);     // at every client
//   all.add(losses);                                        // at the server
//   const double temperature = all.best();
//   temper_classes(probabilities, classes, temperature);
//
// Probabilities are all that is asked for, so predictions that are averages over draws have a
// temperature too. For those of a softmax it is the logits' divisor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "fedep/metric/exact_sum.h"

namespace fedep {

class Parts;  // parts.h

inline constexpr std::size_t kTemperatures = 33;

// With fewer examples there is no telling.
inline constexpr std::size_t kFewestForTemperature = 50;

// From 1/8 to 8, in equal ratios; the middle one is 1.
std::array<double, kTemperatures> temperature_grid();

class TemperatureLosses {
 public:
  // Probabilities [n, classes]. Rows with NaN are left out.
  void add_classes(std::span<const double> probabilities, std::size_t classes,
                   std::span<const std::int32_t> labels);
  // Probabilities [n, events] of events, each of which happened or (0) did not; those of a row count
  // as one example. Those with NaN are left out.
  void add_events(std::span<const double> probabilities, std::size_t events,
                  std::span<const std::uint8_t> happened);
  void add(const TemperatureLosses& other);
  void parts(Parts& parts);

  std::size_t examples() const { return std::size_t(examples_); }
  std::array<double, kTemperatures> sums() const;
  // 1 with too few examples, or where a likelihood ratio test at 5 % does not tell it from 1.
  double best() const;

 private:
  std::array<ExactSum, kTemperatures> sums_;
  std::int64_t examples_ = 0;
};

// The temperature with the least loss, and that loss, where these are the losses on the grid.
struct BestTemperature {
  double temperature = 1, loss = 0;
};
BestTemperature best_temperature(std::span<const double, kTemperatures> losses);

// Probabilities at this temperature, in place; NaN stays.
void temper_classes(std::span<double> probabilities, std::size_t classes, double temperature);
void temper_events(std::span<double> probabilities, double temperature);

}  // namespace fedep
