#include "fedep/store/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/optim/guard.h"
#include "fedep/round/diagnosis/convergence.h"

namespace fedep {
namespace {

constexpr double kMuchLoss = 10;         // times that of the run's first round
constexpr std::size_t kLastLosses = 10;  // rounds whose median is compared with it
constexpr double kFarAway = 3;           // deviations
constexpr std::int64_t kFew = 10;        // one in so many rounds

// The phase that the last round belongs to.
struct JudgedPhase {
  const Recipe& recipe;
  std::size_t index = 0;
  std::span<const RoundRecord> rounds;  // of this phase
  std::span<const RoundRecord> all;     // of the run
  std::int64_t clients = 0;             // 0: not known

  const PhaseSettings& settings() const { return recipe.phases[index]; }
  const Algorithm& algorithm() const { return find_algorithm(settings().algorithm); }
  const OptimizerSettings& optimizer() const {
    return settings().optimizer ? *settings().optimizer : recipe.server.optimizer;
  }
  std::string key(std::string_view name) const { return fmt::format("phase.{}.{}", index, name); }
  std::string optimizer_key(std::string_view name) const {
    return settings().optimizer ? key(fmt::format("optimizer.{}", name))
                                : fmt::format("server.optimizer.{}", name);
  }
  // What makes the server's steps, or the factors', shorter: some algorithms have no optimizer.
  std::string step_key() const {
    if (!algorithm().plain_steps) return optimizer_key("lr");
    return key(algorithm().step == StepRule::admm ? "dual_rate" : "damping");
  }
};

JudgedPhase last_phase(const Recipe& recipe, const History& history) {
  const auto played = std::int64_t(history.rounds.size());
  JudgedPhase phase{.recipe = recipe, .index = 0, .rounds = {}, .all = history.rounds};
  std::int64_t first = 0;
  while (phase.index + 1 < recipe.phases.size() &&
         first + recipe.phases[phase.index].rounds < played) {
    first += recipe.phases[phase.index++].rounds;
  }
  phase.rounds = phase.all.subspan(std::size_t(std::min(first, played)));
  if (history.header) phase.clients = history.header->clients;
  return phase;
}

Verdict distrust(std::string why, std::string key) {
  return {Trust::none, std::move(why), std::move(key)};
}
Verdict unjudged(std::string why, std::string key = {}) {
  return {Trust::not_judged, std::move(why), std::move(key)};
}

using RoundTest = bool (*)(const RoundRecord&);

std::int64_t count(const JudgedPhase& phase, RoundTest is) {
  return std::ranges::count_if(phase.rounds, is);
}

// In more than a tenth of the rounds of the phase's second half: what went wrong at first, and does not any more, is
// forgiven.
bool is_often(const JudgedPhase& phase, RoundTest is) {
  const auto late = phase.rounds.subspan(phase.rounds.size() / 2);
  return kFew * std::ranges::count_if(late, is) > std::int64_t(late.size());
}

std::string smaller_steps(const JudgedPhase& phase) {
  return fmt::format("smaller steps of clients or of the server (client.optimizer.lr, {})",
                     phase.step_key());
}

// Losses of the run's rounds that had steps; a loss that is not finite is NaN in the log.
std::optional<Verdict> loss_verdict(const JudgedPhase& phase) {
  const auto made_steps = [](const RoundRecord& round) { return round.client_steps > 0; };
  const auto first = std::ranges::find_if(phase.all, made_steps);
  std::vector<double> last;
  for (auto round = phase.rounds.rbegin();
       round != phase.rounds.rend() && last.size() < kLastLosses; ++round) {
    if (made_steps(*round))
      last.push_back(std::isnan(round->train_loss) ? INFINITY : round->train_loss);
  }
  if (last.empty()) return std::nullopt;
  std::ranges::nth_element(last, last.begin() + long(last.size() / 2));
  const double now = last[last.size() / 2], then = first->train_loss;
  if (!std::isfinite(now)) {
    return distrust("it diverged: clients' training loss is not finite", smaller_steps(phase));
  }
  if (!(then > 0 && now > kMuchLoss * then)) return std::nullopt;
  return distrust(
      fmt::format("it diverged: clients' training loss is {:.3g}, and was {:.3g} in round {}", now,
                  then, first->round + 1),
      smaller_steps(phase));
}

std::optional<Verdict> divergence(const JudgedPhase& phase) {
  const RoundTest refused = [](const RoundRecord& round) { return round.outside_grid > 0; };
  if (is_often(phase, refused)) {
    return distrust(fmt::format("clients' answers were refused in {} of {} rounds, because they "
                                "were not finite or far larger than answers were",
                                count(phase, refused), phase.rounds.size()),
                    smaller_steps(phase));
  }
  const RoundTest undone = [](const RoundRecord& round) { return round.step_scale == 0; };
  if (is_often(phase, undone)) {
    return distrust(fmt::format("the guard undid the server's step in {} of {} rounds, because q "
                                "would have been improper",
                                count(phase, undone), phase.rounds.size()),
                    fmt::format("a smaller {}", phase.step_key()));
  }
  return loss_verdict(phase);
}

// With momentum the server's steps go on every round, a client's factor only on its visits.
bool parts_from_factors(const JudgedPhase& phase) {
  const CavityKind cavity = phase.settings().cavity.value_or(phase.algorithm().cavity);
  const OptimizerSettings& optimizer = phase.optimizer();
  const bool has_momentum = optimizer.name != "sgd" || optimizer.momentum > 0;
  return cavity == CavityKind::own_factor && has_momentum &&
         phase.settings().factor_clock == FactorClock::visit &&
         phase.recipe.server.clients_per_round < phase.clients;
}

std::string momentum_text(const JudgedPhase& phase) {
  const OptimizerSettings& optimizer = phase.optimizer();
  return fmt::format(
      "; {} acts on q in every round, and on a client's factor only when it is asked, so that q is "
      "not the product of its factors",
      optimizer.name == "sgd" ? fmt::format("the server's momentum of {}", optimizer.momentum)
                              : fmt::format("the server's {}", optimizer.name));
}

std::string momentum_key(const JudgedPhase& phase) {
  return phase.optimizer().name == "sgd"
             ? fmt::format("{} = \"round\", or {} = 0", phase.key("factor_clock"),
                           phase.optimizer_key("momentum"))
             : fmt::format("{} = \"sgd\", without momentum", phase.optimizer_key("name"));
}

std::string improper_key(const JudgedPhase& phase) {
  if (parts_from_factors(phase)) return momentum_key(phase);
  if (phase.settings().guard.mode == GuardMode::count) {
    return fmt::format("{} = \"back_off\", or a smaller {}", phase.key("guard"), phase.step_key());
  }
  return fmt::format("a smaller {}", phase.step_key());
}

std::string moved_text(const WindowEnd& end) {
  if (!std::isfinite(end.moved())) return "was improper";
  if (end.mean_moved >= end.log_sd_moved) {
    return fmt::format("moved by {:.2g} standard deviations", end.mean_moved);
  }
  return fmt::format("changed its deviations by a factor of {:.3g}", std::exp(end.log_sd_moved));
}

// What is left is at least another such move: noise turns round, or forgets.
bool goes_on(const WindowEnd& end) { return end.left && end.left->most() >= end.moved(); }

bool is_creep(const WindowEnd& before, const WindowEnd& latest) {
  const auto left = [](const WindowEnd& end) {
    return end.left ? std::optional(end.left->most()) : std::nullopt;
  };
  return goes_on(latest) && (!before.left || goes_on(before)) &&
         creeps(left(before), left(latest), kConverged);
}

// 1.5, and 330 in place of 3.3e+02.
std::string rounded(double x) { return fmt::format("{:.{}f}", x, x < 10 ? 1 : 0); }

// Of the latest of windows in which q went on in one direction.
std::string creep_text(const WindowEnd& end) {
  const MovesLeft& left = *end.left;
  if (left.mean >= left.log_sd) {
    return fmt::format(
        "moved by {:.2g} standard deviations, as before in one direction, with about {} to go",
        end.mean_moved, rounded(left.mean));
  }
  return fmt::format(
      "changed its deviations by a factor of {:.3g}, as before in one direction, with about {:.2g} "
      "to go",
      std::exp(end.log_sd_moved), std::exp(left.log_sd));
}

// Windows of the phase, in turn.
struct Windows {
  std::vector<WindowEnd> ends;
  std::int64_t length = 0;  // of the last one that began
};

Windows windows_of(const JudgedPhase& phase) {
  Windows out;
  for (const RoundRecord& round : phase.rounds) {
    if (round.window > 0) out.length = round.window;
    if (round.window_end) out.ends.push_back(*round.window_end);
  }
  return out;
}

Verdict still_moving(const JudgedPhase& phase, const WindowEnd& before, const WindowEnd& latest,
                     std::int64_t length) {
  // Noise moves q to and fro, by much where deviations are small.
  const bool away = latest.moved() >= kFarAway && !(latest.moved() < 1.5 * before.moved());
  const std::string more_rounds = fmt::format("more rounds ({})", phase.key("rounds"));
  const bool creep = !away && is_creep(before, latest);
  if (creep && !parts_from_factors(phase)) {
    return distrust(fmt::format("it has not converged, but creeps: over the last window of {} "
                                "rounds q {}",
                                length, creep_text(latest)),
                    more_rounds);
  }
  std::string why = fmt::format(
      "{}: over the last window of {} rounds q {}; below {} in two windows "
      "running is converged",
      away ? "it diverged" : "it has not converged", length, moved_text(latest), kConverged);
  if (parts_from_factors(phase)) {
    return distrust(why + momentum_text(phase), momentum_key(phase));
  }
  if (away) return distrust(std::move(why), smaller_steps(phase));
  const bool slows_down = latest.moved() < 0.8 * before.moved();
  if (slows_down || latest.moved() < kConverged) {
    return distrust(std::move(why), more_rounds);
  }
  return distrust(std::move(why), fmt::format("a {} that averages the rounds' noise away, or a "
                                              "smaller {}",
                                              phase.key("cooldown"), phase.step_key()));
}

std::string standstill_key(const JudgedPhase& phase) {
  return fmt::format("a {} that leaves something of them",
                     phase.key(phase.settings().cooldown ? "cooldown" : "schedule.server_rate"));
}

Verdict convergence(const JudgedPhase& phase, bool over) {
  const Windows windows = windows_of(phase);
  const auto has_two = [&](std::size_t end) {  // the two windows before `end`
    return end >= 2 && windows.ends[end - 1].judged && windows.ends[end - 2].judged;
  };
  std::size_t end = windows.ends.size();
  while (end > 0 && !has_two(end)) --end;
  if (end == 0) {
    if (windows.length == 0) return unjudged("its log does not say how far q moved");
    if (windows.ends.size() >= 2) {
      return unjudged(
          "a rate, clip or alpha changed, or steps were lost, in the windows of rounds over which "
          "q's movement is measured");
    }
    if (windows.length == kEndless) {
      return unjudged(
          "the server's steps are 0, so that q stands still and nothing tells whether it "
          "has converged",
          standstill_key(phase));
    }
    return unjudged(
        fmt::format("it has {} rounds, and telling whether q has converged takes two windows of {}",
                    phase.rounds.size(), windows.length),
        fmt::format("more rounds ({})", phase.key("rounds")));
  }
  const WindowEnd &latest = windows.ends[end - 1], &before = windows.ends[end - 2];
  const bool still = latest.moved() < kConverged && before.moved() < kConverged;
  if (still && !is_creep(before, latest)) return {};
  const std::string moves = still ? creep_text(latest) : moved_text(latest);
  if (end < windows.ends.size()) {
    return unjudged(
        fmt::format("a rate, clip or alpha changed until the end, so that q moved less whether it "
                    "had arrived or not; before that it {} in a window",
                    moves));
  }
  if (!over) return unjudged(fmt::format("the run is not over; in its latest window q {}", moves));
  return still_moving(phase, before, latest, windows.length);
}

}  // namespace

Verdict verdict_of(const Recipe& recipe, const History& history, bool over, std::int64_t improper) {
  if (!recipe.table.empty()) {
    return unjudged("recipes of the paper's tables are played as the paper played them");
  }
  if (recipe.phases.empty() || history.rounds.empty()) return unjudged("no round was played");
  const JudgedPhase phase = last_phase(recipe, history);
  if (std::optional<Verdict> diverged = divergence(phase)) {
    if (!parts_from_factors(phase)) return *diverged;
    return distrust(diverged->why + momentum_text(phase),
                    fmt::format("{}, or {}", momentum_key(phase), diverged->key));
  }
  if (phase.algorithm().point_estimate) return {};
  if (improper > 0) {
    return distrust(
        fmt::format("it diverged, or never became proper: {} of q's precisions {} not positive{}",
                    improper, improper == 1 ? "is" : "are",
                    parts_from_factors(phase) ? momentum_text(phase) : ""),
        improper_key(phase));
  }
  return convergence(phase, over);
}

Verdict verdict_of(const Recipe& recipe, const History& history) {
  return verdict_of(recipe, history, history.end.has_value(),
                    history.end ? history.end->improper : 0);
}

bool is_finished(const Recipe& recipe, const History& history) {
  const auto played = std::int64_t(history.rounds.size());
  if (!history.end || history.end->rounds != played) return false;
  std::int64_t rounds = 0;
  for (const PhaseSettings& phase : recipe.phases) rounds += phase.rounds;
  return played == rounds || recipe.stop.converged > 0;
}

std::string to_text(const Verdict& verdict) {
  if (verdict.key.empty()) return verdict.why;
  return fmt::format("{}. What helps: {}", verdict.why, verdict.key);
}

std::string_view word_of(Trust trust) {
  switch (trust) {
    case Trust::full:
      return "yes";
    case Trust::not_judged:
      return "not judged";
    case Trust::none:
      break;
  }
  return "no";
}

std::int64_t improper_coordinates(const Message& q) {
  if (is_proper(q)) return 0;
  const Message proper(HostVector<float>(q.size()), 1.0f);
  const auto count = std::int64_t(count_improper(proper, q));
  return std::max<std::int64_t>(1, count);  // an eta that is not finite
}

}  // namespace fedep
