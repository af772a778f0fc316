#include "app/run/size_plan.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <vector>

#include <fmt/format.h>

#include "app/bench/step_cost.h"
#include "app/run/memory_warning.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/grid.h"
#include "fedep/sim/sparse/sparse_factors.h"

namespace fedep {
namespace {

constexpr double kYear = 365.25 * 24 * 3600;
// What a core does, to within a factor of a few: operations and bytes a second, what a step costs
// however small it is, and what a visit moves for each weight: cavity, mean, delta, integers.
constexpr double kOperationsPerSecond = 5e10, kBytesPerSecond = 1e10, kSecondsPerStep = 5e-6;
constexpr double kBytesPerVisit = 60;

// Two digits or more: 3.4, 21, 240, 1e9.
std::string rounded(double value) {
  if (value < 9.95) return fmt::format("{:.1f}", value);
  return value < 1e6 ? fmt::format("{:.0f}", value) : fmt::format("{:.0e}", value);
}

std::string bytes_text(double bytes) {
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  std::size_t unit = 0;
  for (bytes /= 1000; bytes >= 1000 && unit + 1 < kUnits.size(); bytes /= 1000) ++unit;
  return fmt::format("{} {}", rounded(std::max(bytes, 0.1)), kUnits[unit]);
}

std::string time_text(double seconds) {
  if (seconds < 1) return "less than a second";
  if (seconds < 1.5) return "a second";
  if (seconds < 120) return fmt::format("{:.0f} seconds", seconds);
  if (seconds < 2 * 3600) return fmt::format("{:.0f} minutes", seconds / 60);
  if (seconds < 2 * 86400) return fmt::format("{:.0f} hours", seconds / 3600);
  if (seconds < 2 * kYear) return fmt::format("{:.0f} days", seconds / 86400);
  return fmt::format("{} years", rounded(seconds / kYear));
}

double slots_of(const OptimizerSettings& optimizer) {
  return double(find_optimizer(optimizer.name).slots(optimizer).size());
}

double numbers_of(const Phase& phase, double weights) {
  return weights + double(lambda_size(phase.family, std::size_t(weights)));
}

// q, its prior and mean, the optimizer's slots, the sum as integers, and of a client that is visited
// its cavity, delta, integers and chain.
double server_bytes(const Phase& phase, double weights) {
  const double floats = (5 + slots_of(phase.server_optimizer)) * numbers_of(phase, weights);
  return sizeof(float) * (floats + 5 * weights) +
         2 * sizeof(std::int64_t) * numbers_of(phase, weights);
}

double checkpoint_bytes(const Recipe& recipe, const Phase& phase, double weights,
                        std::size_t touched, double clients) {
  const double state =
      sizeof(float) * (2 + slots_of(phase.server_optimizer)) * numbers_of(phase, weights);
  if (!phase.stateful() || !recipe.checkpoint.factors) return state;
  const double asked = std::min(clients, double(phase.rounds) * double(phase.clients_per_round));
  return state + asked * double(bytes_of_factor(phase, touched));
}

// Seconds of a step with a batch.
double step_seconds(const StepCost& cost, double batch) {
  const double operations =
      cost.counted ? cost.operations(batch) : 6.0 * double(cost.weights) * batch;
  return kSecondsPerStep + operations / kOperationsPerSecond + cost.bytes(batch) / kBytesPerSecond;
}

// Rows of sparse features cost what they have, not what they could have.
StepCost sparse_cost(StepCost cost, const Dataset& data, double batch) {
  constexpr std::size_t kLooked = 20;
  const std::size_t clients = data.clients().size(), looked = std::min(clients, kLooked);
  std::size_t rows = 0, features = 0;
  Batch some;
  for (std::size_t i = 0; i < looked; ++i) {
    const std::size_t client = i * clients / looked;
    std::vector<std::uint32_t> positions(std::min<std::size_t>(20, data.clients()[client].second));
    std::iota(positions.begin(), positions.end(), 0u);
    data.train_batch(client, positions, nullptr, some);
    rows += some.size;
    features += some.sparse.columns.size();
  }
  const double of_a_row = double(features) / double(std::max<std::size_t>(rows, 1));
  const double touched = of_a_row * double(data.info().outputs);
  cost.counted = true;
  cost.multiply_adds = std::size_t(touched);
  cost.live_weights = std::size_t(std::min(double(cost.weights), touched * batch));
  return cost;
}

// Of a visit of the full family, which has no chain: some ten sweeps, each with an integral and two
// products with the covariance a row, and a Cholesky factor.
double row_visit_seconds(double examples, double weights) {
  constexpr double kSweeps = 10, kSecondsPerIntegral = 2e-6;
  const double square = weights * weights / kOperationsPerSecond;
  return kSweeps * (examples * (kSecondsPerIntegral + 4 * square) + weights * square);
}

// Passes over a client's data that a visit makes.
double passes(const Recipe& recipe, const Phase& phase) {
  return double(recipe.client.epochs) +
         (phase.algorithm->point_estimate ? 0.0 : double(phase.inference.epochs));
}

}  // namespace

std::optional<double> total_memory(const std::filesystem::path& meminfo) {
  std::ifstream file(meminfo);
  std::string key;
  std::optional<double> bytes;
  for (double kib = 0; file >> key >> kib; file.ignore(1000, '\n')) {
    if (key == "MemTotal:" || key == "SwapTotal:") bytes = bytes.value_or(0) + 1024 * kib;
  }
  return bytes;
}

void check_data_size(const DataSettings& settings, std::optional<double> memory) {
  const DatasetRow& row = find_dataset(settings.name);
  if (row.planned == nullptr || !memory) return;
  constexpr double kBytesPerWeight = 40;  // of q, a prior, a mean and a delta at the least
  const PlannedSize size = row.planned(settings);
  const double bytes = size.bytes + kBytesPerWeight * size.weights;
  if (bytes <= *memory) return;
  throw InputError(
      fmt::format("data set {} with data.clients = {}, data.examples = {} and data.dimension = {} "
                  "must fit into "
                  "this machine's memory, {}, but takes {}",
                  row.name, settings.clients, settings.examples, settings.dimension,
                  bytes_text(*memory), bytes_text(bytes)));
}

SizePlan plan_sizes(const Recipe& recipe, std::span<const Phase> phases, const Task& task) {
  SizePlan plan;
  const auto weights = double(size_of(task.layout()));
  const auto clients = double(task.population().size());
  const double mean_examples = double(task.population().examples()) / std::max(1.0, clients);
  const Dataset* const data = task.data();
  StepCost cost{.weights = std::size_t(weights)};
  double held_out = 0;
  if (data != nullptr) {
    cost = step_cost(recipe.model, data->info());
    held_out = double(data->test_size());
    const double bytes_per_number = data->raw_images()    ? 1
                                    : data->info().sparse ? 0.01
                                                          : sizeof(float);
    plan.data_bytes = (double(task.population().examples()) + held_out) * bytes_per_number *
                      double(data->info().feature_count());
    if (data->made_when_asked())
      plan.data_bytes = find_dataset(recipe.data.name).planned(recipe.data).bytes;
  } else if (const auto planned = find_dataset(recipe.data.name).planned; planned != nullptr) {
    plan.data_bytes = planned(recipe.data).bytes;
  }
  const double batch = std::min(double(recipe.client.batch), std::max(1.0, mean_examples));
  if (data != nullptr && data->info().sparse) cost = sparse_cost(cost, *data, batch);
  double rounds = 0, largest_checkpoint = 0, means = 0;
  const std::vector<std::size_t> touched =
      weights_touched(recipe, {phases.begin(), phases.end()}, task);
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    const double steps = std::ceil(mean_examples / batch) * passes(recipe, phase);
    const double reached = touched[i] > 0 ? double(touched[i]) : weights;
    const double visit = phase.family == Family::full ? row_visit_seconds(mean_examples, weights)
                         : data != nullptr            ? steps * step_seconds(cost, batch) +
                                                 kBytesPerVisit * reached / kBytesPerSecond
                                           : kSecondsPerStep + weights * weights * weights / 1e9;
    const double round = double(phase.clients_per_round) * visit;
    plan.longest_round = std::max(plan.longest_round, round);
    plan.seconds += round * double(phase.rounds);
    plan.model_bytes = std::max(plan.model_bytes, server_bytes(phase, weights));
    largest_checkpoint =
        std::max(largest_checkpoint, checkpoint_bytes(recipe, phase, weights, touched[i], clients));
    means = std::max(means, double(bytes_of_means(phase, std::size_t(weights))));
    rounds += double(phase.rounds);
  }
  const double scored = recipe.evaluate.examples > 0
                            ? std::min(held_out, double(recipe.evaluate.examples))
                            : held_out;
  const auto times = [&](int every) { return 1 + (every > 0 ? rounds / every : 0); };
  const double draws = times(recipe.evaluate.every) +
                       times(recipe.evaluate.marginal_every) * double(recipe.evaluate.samples);
  plan.seconds += draws * scored * step_seconds(cost, batch) / batch / 3;
  plan.factor_bytes = double(factor_bytes(recipe, phases, std::size_t(clients), touched) +
                             mean_bytes(phases, std::size_t(weights)));
  constexpr double kBytesPerRound = 700;  // of the log and of TensorBoard's file
  const double saved = recipe.checkpoint.every > 0 ? rounds / recipe.checkpoint.every + 1 : 1;
  plan.disk_bytes = kBytesPerRound * rounds +
                    (std::min(double(recipe.checkpoint.keep), saved) + 1) * largest_checkpoint +
                    means;  // which all checkpoints share
  return plan;
}

void check_sizes(const SizePlan& plan, std::optional<double> memory) {
  if (memory && plan.data_bytes + plan.model_bytes > *memory) {
    throw InputError(fmt::format(
        "a run must fit into this machine's memory, {}, but its data take {} and its model {}",
        bytes_text(*memory), bytes_text(plan.data_bytes), bytes_text(plan.model_bytes)));
  }
  constexpr double kLongest = 10 * kYear;
  if (plan.longest_round > kLongest) {
    throw InputError(
        fmt::format("a round must end within {}, but would take about {}: client.epochs, "
                    "phase.inference.epochs "
                    "and .samples and server.clients_per_round say how much is done in one",
                    time_text(kLongest), time_text(plan.longest_round)));
  }
}

std::string to_text(const SizePlan& plan) {
  return fmt::format("about {} of memory, {} of disk and, on one core, {}",
                     bytes_text(plan.memory_bytes()), bytes_text(plan.disk_bytes),
                     time_text(plan.seconds));
}

void check_clips(const Recipe& recipe, std::span<const Phase> phases,
                 const Population& population) {
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    // Deltas of weights are about 1. Those of precisions, and of precisions times weights, are as
    // large as what a client knows: so much per example, in units of the noise.
    double size = 1;
    if (!phase.algorithm->point_estimate) {
      const double per_client =
          double(population.examples()) / std::max(1.0, double(population.size()));
      const double noise = recipe.model.noise;
      size = std::max({size, phase.inference.alpha * per_client, per_client / (noise * noise)});
    }
    const double most = largest_clip(phase.grid_bits, phase.clients_per_round, size);
    if (phase.clip <= most) continue;
    throw InputError(fmt::format(
        "phase.{}.clip must be at most {:.2g} where {} clients' deltas are summed in {} bits "
        "(server.grid_bits), but is {:.2g}: the grid follows from it, and all that is smaller than "
        "{:.2g} would be rounded to 0; a clip of 0 does not clip",
        i, most, phase.clients_per_round, phase.grid_bits, phase.clip, phase.clip / most * size));
  }
}

}  // namespace fedep
