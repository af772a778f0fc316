#include "app/run/run_warnings.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/algorithm/schedule.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/audit/audit.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/nearest.h"
#include "fedep/metric/temperature.h"
#include "fedep/model/registry.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/prior_pull.h"

namespace fedep {
namespace {

constexpr std::size_t kChunk = 500;  // held-out examples at a time

bool anybody_makes_steps(const ClientSettings& client, bool pooled, const Population& population) {
  for (std::size_t c = 0; c < population.size(); ++c) {
    if (makes_steps(client, pooled, population[c].examples)) return true;
  }
  return false;
}

// Columns of a table that do not vary, the first of them by name.
std::string constant_names(const DatasetInfo& info) {
  constexpr std::size_t kMost = 8;
  if (!info.table) return {};
  return shown_list(constant_columns(*info.table).names, kMost);
}

// What a cooldown does that nobody can have meant, or nothing.
std::string cooldown_problem(const Phase& phase) {
  if (!phase.cooldown) return {};
  const auto& [after, rounds, to] = *phase.cooldown;
  if (after >= phase.rounds) {
    return fmt::format("the cooldown begins after {} rounds, and the phase has {}", after,
                       phase.rounds);
  }
  const std::int64_t steps = std::int64_t(after) + rounds - 1;  // rounds with a step
  if (to > 0 || phase.rounds <= steps + 1) return {};
  return fmt::format(
      "the cooldown ends at 0, and nothing changes in the last {} of the phase's {} rounds",
      phase.rounds - steps, phase.rounds);
}

// Where clients have too few calibration rows together, or nothing.
std::string few_calibration_rows(const Recipe& recipe, const Dataset& data) {
  const std::size_t rows = data.calibration() == nullptr ? 0 : data.calibration()->test_size();
  if (recipe.data.calibration_fraction == 0 || rows >= kFewestForTemperature) return {};
  return fmt::format(
      "data.calibration_fraction leaves {} calibration rows of all clients, and fewer than {} "
      "tell no temperature: it is 1",
      rows, kFewestForTemperature);
}

// Where a schedule leaves nothing of the server's steps, or nothing.
std::string standstill(const Phase& phase) {
  const std::optional<RoundSchedule>& rate = phase.schedule.server_rate;
  if (!rate || rate->after >= phase.rounds) return {};
  std::int64_t still = 0;
  for (std::int64_t round = 0; round < phase.rounds; ++round) {
    still += scheduled_in_round(*rate, round, phase.rounds) == 0;
  }
  if (still <= 1 && still < phase.rounds) return {};  // one may end at 0
  return fmt::format(
      "the schedule of server_rate is 0, and nothing changes, in {} of the phase's {} rounds",
      still, phase.rounds);
}

// Schedules that never begin, by name.
std::vector<std::string> idle_schedules(const Phase& phase) {
  std::vector<std::string> names;
  const auto look = [&](std::string_view name, const std::optional<RoundSchedule>& schedule) {
    if (schedule && schedule->after >= phase.rounds) names.emplace_back(name);
  };
  look("client_rate", phase.schedule.client_rate);
  look("server_rate", phase.schedule.server_rate);
  look("clip", phase.schedule.clip);
  look("alpha", phase.schedule.alpha);
  return names;
}

// A tail that is longer than its phase, and so of the rounds in which q was still on its way; or nothing.
std::string long_tail(const Phase& phase) {
  if (!phase.average || phase.average->kind != AverageKind::tail) return {};
  if (phase.average->rounds <= phase.rounds) return {};
  return fmt::format(
      "the average is of the phase's last {} rounds, and the phase has {}: it is of all of them",
      phase.average->rounds, phase.rounds);
}

// A table's clients of whom some are not asked in a round, where all of them could be; or nothing.
std::string unasked_clients(const Phase& phase, const Task& task) {
  const std::size_t clients = task.population().size();
  const bool is_table = task.data() != nullptr && task.data()->info().table != nullptr;
  if (!is_table || phase.family != Family::full || phase.clients_per_round >= clients) return {};
  return fmt::format(
      "{} of {} clients are asked in a round (server.clients_per_round): the others wait for their "
      "turn, and the run needs more rounds; {} asks all",
      phase.clients_per_round, clients, clients);
}

// Where a network begins with weights that are all alike, or nothing.
std::string beginning_problem(const Recipe& recipe, const Phase& phase, const Task& task) {
  const bool at_prior = !phase.algorithm->point_estimate && phase.first_round == 0 &&
                        phase.factors == FactorStart::flat && recipe.server.prior;
  if (!at_prior || task.data() == nullptr || find_model(recipe.model.name).is_linear) return {};
  return fmt::format(
      "all weights of the model ({}) begin at the prior's mean, and a network's weights that are "
      "alike stay alike: let a fed_avg phase go first, or set factors = \"carry_mean\"",
      recipe.model.name);
}

// Steps of a visit, where rows that were taken out of training leave fewer full batches.
std::string lost_steps(const Recipe& recipe, const Phase& phase, const Task& task) {
  const Dataset* const rows = task.data() != nullptr ? task.data()->calibration() : nullptr;
  if (rows == nullptr || phase.family == Family::full) return {};
  std::size_t without = 0, with = 0;
  std::vector<std::size_t> held(task.population().size());
  for (std::size_t i = 0; i < rows->test_size(); ++i) ++held[rows->test_client(i)];
  for (std::size_t c = 0; c < held.size(); ++c) {
    const std::size_t examples = task.data()->clients()[c].second;
    const bool pooled = phase.algorithm->pools_epochs;
    without += steps_of_visit(recipe.client, pooled, examples);
    with += steps_of_visit(recipe.client, pooled, examples + held[c]);
  }
  if (10 * without >= 9 * with) return {};
  return fmt::format(
      "clients make {:.1f} steps a visit where they would make {:.1f} with their calibration "
      "rows{}",
      double(without) / double(held.size()), double(with) / double(held.size()),
      recipe.client.remainder == Remainder::keep
          ? ""
          : ": client.remainder = \"keep\" keeps batches that are not full");
}

}  // namespace

std::string visit_steps_text(const Recipe& recipe, const std::vector<Phase>& phases,
                             const Task& task) {
  if (task.data() == nullptr) return {};
  std::vector<std::string> parts;
  for (const Phase& phase : phases) {
    if (phase.family == Family::full) continue;  // no chain makes steps
    std::size_t least = SIZE_MAX, most = 0;
    for (const auto& [id, examples] : task.data()->clients()) {
      const std::size_t steps =
          steps_of_visit(recipe.client, phase.algorithm->pools_epochs, examples);
      least = std::min(least, steps);
      most = std::max(most, steps);
    }
    const std::string steps =
        least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most);
    const std::string part = fmt::format("{} ({})", steps, phase.algorithm->name);
    if (std::ranges::find(parts, part) == parts.end()) parts.push_back(part);
  }
  if (parts.empty()) return {};
  return fmt::format("steps a visit: {}", fmt::join(parts, ", "));
}

std::vector<std::string> warnings_of(const Recipe& recipe, const std::vector<Phase>& phases,
                                     const Task& task) {
  std::vector<std::string> lines;
  if (const Dataset* const data = task.data(); data != nullptr) {
    const DatasetInfo& info = data->info();
    if (info.audit) {
      for (const Finding& finding : info.audit->findings) lines.push_back(to_text(finding));
    } else if (info.skipped_records > 0) {
      lines.push_back(
          fmt::format("{} bad records were left out{}{}", info.skipped_records,
                      info.first_skipped.empty() ? "" : "; the first: ", info.first_skipped));
    }
    if (const std::string names = constant_names(info); !names.empty() && !info.audit) {
      lines.push_back(fmt::format(
          "columns that have one value, or none, in all clients' training rows teach nothing and "
          "are not read: {}",
          names));
    }
    if (info.table && !info.audit) {
      lines.insert(lines.end(), info.table->suspected.begin(), info.table->suspected.end());
    }
    if (std::string line = few_calibration_rows(recipe, *data); !line.empty()) {
      lines.push_back(std::move(line));
    }
    if (data->test_size() == 0) {
      const bool is_drawn = find_dataset(recipe.data.name).holds_out;
      lines.push_back(fmt::format("no examples are held out{}, so there are no scores",
                                  is_drawn ? " (data.test_fraction)" : ": the data bring none"));
    }
    for (std::size_t i = 0; i < phases.size(); ++i) {
      const Algorithm& algorithm = *phases[i].algorithm;
      if (phases[i].family == Family::full) continue;  // no chain makes steps
      if (anybody_makes_steps(recipe.client, algorithm.pools_epochs, task.population())) continue;
      lines.push_back(fmt::format(
          "phase.{} ({}): no client has the {} examples of a batch (client.batch), so none makes a "
          "step",
          i, algorithm.name, recipe.client.batch));
    }
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const std::string what = cooldown_problem(phases[i]);
    if (what.empty()) continue;
    lines.push_back(fmt::format("phase.{} ({}): {}", i, phases[i].algorithm->name, what));
  }
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const auto name = phases[i].algorithm->name;
    for (const std::string& schedule : idle_schedules(phases[i])) {
      lines.push_back(fmt::format("phase.{} ({}): the schedule of {} begins after the phase's end",
                                  i, name, schedule));
    }
    for (const std::string& line :
         {standstill(phases[i]), long_tail(phases[i]), unasked_clients(phases[i], task),
          lost_steps(recipe, phases[i], task), beginning_problem(recipe, phases[i], task)}) {
      if (!line.empty()) lines.push_back(fmt::format("phase.{} ({}): {}", i, name, line));
    }
  }
  if (const Dataset* const data = task.data(); data != nullptr) {
    const double own = least_curvature(recipe.model, data->info());
    for (const StrongPull& pull :
         strong_pulls(recipe, phases, task.population(), own, task.priors())) {
      lines.push_back(to_text(pull));
    }
  }
  return lines;
}

std::vector<std::string> momentum_remarks(const std::vector<Phase>& phases, std::size_t clients) {
  std::vector<std::string> lines;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    const Phase& phase = phases[i];
    const OptimizerSettings& server = phase.server_optimizer;
    const bool parts = phase.stateful() && server.name == "sgd" && server.momentum > 0 &&
                       phase.clients_per_round < clients && phase.clock == FactorClock::visit;
    if (!parts) continue;
    lines.push_back(fmt::format(
        "phase.{} ({}): the server's momentum of {:g} acts in every round, a client's only on its "
        "visits, and {} of {} clients are asked: while they learn q is not the product of the "
        "prior and their factors; factor_clock = \"round\" keeps it so",
        i, phase.algorithm->name, server.momentum, phase.clients_per_round, clients));
  }
  return lines;
}

HeldOutNumbers held_out_numbers(const Dataset& data, int scored) {
  const std::size_t all = data.info().target == TargetKind::real ? data.test_size() : 0;
  HeldOutNumbers out{scored > 0 ? std::min(all, std::size_t(scored)) : all, 0};
  double mean = 0, squares = 0, count = 0;
  Batch batch;
  for (std::size_t begin = 0; begin < all; begin += kChunk) {
    data.test_batch(begin, std::min(begin + kChunk, all), batch);
    for (const float value : batch.reals) {
      const double gap = double(value) - mean;
      mean += gap / ++count;
      squares += gap * (double(value) - mean);
    }
  }
  if (count > 0) out.deviation = std::sqrt(squares / count);
  return out;
}

std::string noise_doubt(const Metrics& scores, double noise, const HeldOutNumbers& outcomes) {
  constexpr std::size_t kFewest = 10;  // examples that say anything
  const auto score = [&](std::string_view name) {
    const auto found = std::ranges::find(scores, name, &Metrics::value_type::first);
    return found == scores.end() ? NAN : found->second;
  };
  const bool drawn = std::isfinite(score("spread_marginal"));
  const double rmse = score(drawn ? "rmse_marginal" : "rmse");
  if (!std::isfinite(rmse) || outcomes.examples < kFewest) return {};
  // The log of an RMSE of n normal errors has a standard deviation of 1/√(2n).
  const double sure = std::max(std::log(1.25), 2 / std::sqrt(2.0 * double(outcomes.examples)));
  if (outcomes.deviation > 0 && std::log(rmse / outcomes.deviation) > sure) {
    return fmt::format(
        "the held-out RMSE is {:.3g}, and predicting the mean has {:.3g}: the run has not "
        "converged, has diverged, or has too few examples for its weights",
        rmse, outcomes.deviation);
  }
  const double spread = drawn ? score("spread_marginal") : 0;
  const double fitting = std::sqrt(std::max(0.0, rmse * rmse - spread * spread));
  const double off = std::log(drawn ? score("error_ratio_marginal") : rmse / noise);
  const bool narrow = off > 0;
  // Errors can be larger than predicted for other reasons than the noise.
  const double of_noise = std::log(fitting / noise) * (narrow ? 1 : -1);
  if (!(std::fabs(off) > sure && of_noise > std::log(1.25))) return {};
  const std::string by =
      fmt::format("{:.3g} times too {}", std::exp(std::fabs(off)), narrow ? "narrow" : "wide");
  return fmt::format(
      "the held-out RMSE is {:.3g} and model.noise {:.3g}: intervals are {} {}{}; once the run has "
      "converged, and unless columns that go together are why, set model.noise near {:.3g}, and "
      "with it what is in its unit, such as lr and "
      "alpha (docs/own_model.md)",
      rmse, noise,
      drawn    ? "about"
      : narrow ? "up to"
               : "at least",
      by, drawn || !narrow ? "" : " (with evaluate.samples the weights' own spread is told apart)",
      fitting);
}

}  // namespace fedep
