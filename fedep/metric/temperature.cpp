#include "fedep/metric/temperature.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "fedep/message/check.h"
#include "fedep/metric/parts.h"

namespace fedep {
namespace {

// What rounding to nothing leaves of a probability.
constexpr double kLeast = 1e-300;

double log_of(double p) { return std::log(std::max(p, kLeast)); }

// −log p_T of an event with this log odds.
double event_loss(double log_odds, double inverse) {
  const double z = log_odds * inverse;
  return z > 0 ? std::log1p(std::exp(-z)) : std::log1p(std::exp(z)) - z;
}

double log_odds_of(double p) { return log_of(p) - log_of(1 - p); }

}  // namespace

std::array<double, kTemperatures> temperature_grid() {
  std::array<double, kTemperatures> grid;
  constexpr double kMiddle = double(kTemperatures / 2);
  for (std::size_t i = 0; i < kTemperatures; ++i) {
    grid[i] = std::exp2(3 * (double(i) - kMiddle) / kMiddle);
  }
  return grid;
}

void TemperatureLosses::add_classes(std::span<const double> probabilities, std::size_t classes,
                                    std::span<const std::int32_t> labels) {
  check_same_size("TemperatureLosses", "probabilities", labels.size() * classes,
                  probabilities.size());
  const auto grid = temperature_grid();
  std::vector<double> logs(classes);
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto p = probabilities.subspan(row * classes, classes);
    if (std::any_of(p.begin(), p.end(), [](double x) { return std::isnan(x); })) continue;
    std::transform(p.begin(), p.end(), logs.begin(), log_of);
    const double top = *std::max_element(logs.begin(), logs.end());
    for (std::size_t i = 0; i < kTemperatures; ++i) {
      const double inverse = 1 / grid[i];
      double sum = 0;
      for (const double log : logs) sum += std::exp((log - top) * inverse);
      sums_[i].add(std::log(sum) - (logs[std::size_t(labels[row])] - top) * inverse);
    }
    ++examples_;
  }
}

void TemperatureLosses::add_events(std::span<const double> probabilities, std::size_t events,
                                   std::span<const std::uint8_t> happened) {
  check_same_size("TemperatureLosses", "events", probabilities.size(), happened.size());
  const auto grid = temperature_grid();
  for (std::size_t begin = 0; begin < probabilities.size(); begin += events) {
    bool tells = false;
    for (std::size_t event = begin; event < begin + events; ++event) {
      if (std::isnan(probabilities[event])) continue;
      const double odds = log_odds_of(probabilities[event]);
      for (std::size_t i = 0; i < kTemperatures; ++i) {
        sums_[i].add(event_loss(happened[event] != 0 ? odds : -odds, 1 / grid[i]));
      }
      tells = true;
    }
    examples_ += tells;
  }
}

void TemperatureLosses::add(const TemperatureLosses& other) {
  for (std::size_t i = 0; i < kTemperatures; ++i) sums_[i].add(other.sums_[i]);
  examples_ += other.examples_;
}

void TemperatureLosses::parts(Parts& parts) {
  for (ExactSum& sum : sums_) parts.sum(sum);
  parts.count(examples_);
}

std::array<double, kTemperatures> TemperatureLosses::sums() const {
  std::array<double, kTemperatures> sums;
  for (std::size_t i = 0; i < kTemperatures; ++i) sums[i] = sums_[i].value();
  return sums;
}

double TemperatureLosses::best() const {
  constexpr double kTold = 3.84;  // of χ² with one degree of freedom 5 % are beyond
  if (examples_ < std::int64_t(kFewestForTemperature)) return 1;
  const auto losses = sums();
  const BestTemperature best = best_temperature(losses);
  return 2 * (losses[kTemperatures / 2] - best.loss) < kTold ? 1 : best.temperature;
}

BestTemperature best_temperature(std::span<const double, kTemperatures> losses) {
  const auto grid = temperature_grid();
  const std::size_t i =
      std::size_t(std::min_element(losses.begin(), losses.end()) - losses.begin());
  if (i == 0 || i + 1 == kTemperatures) return {grid[i], losses[i]};
  // The least of the parabola through three points (log T, loss): sums are smooth there, and the
  // grid's points are equally far apart.
  const double left = losses[i - 1] - losses[i], right = losses[i + 1] - losses[i];
  if (!(left + right > 0)) return {grid[i], losses[i]};
  const double shift = 0.5 * (left - right) / (left + right);
  return {grid[i] * std::pow(grid[1] / grid[0], shift), losses[i] - 0.25 * (left - right) * shift};
}

void temper_classes(std::span<double> probabilities, std::size_t classes, double temperature) {
  check_positive("temper", "temperature", temperature);
  for (std::size_t begin = 0; begin < probabilities.size(); begin += classes) {
    const auto p = probabilities.subspan(begin, classes);
    double top = 0;
    for (const double x : p) top = std::max(top, x);
    const double log_top = log_of(top);
    double sum = 0;
    for (double& x : p) {
      if (!std::isnan(x)) x = std::exp((log_of(x) - log_top) / temperature);
      sum += x;
    }
    for (double& x : p) x /= sum;
  }
}

void temper_events(std::span<double> probabilities, double temperature) {
  check_positive("temper", "temperature", temperature);
  for (double& p : probabilities) {
    if (!std::isnan(p)) p = 1 / (1 + std::exp(-log_odds_of(p) / temperature));
  }
}

}  // namespace fedep
