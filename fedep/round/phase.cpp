#include "fedep/round/phase.h"

#include <algorithm>
#include <string>

#include "fedep/algorithm/cooldown.h"
#include "fedep/algorithm/schedule.h"
#include "fedep/config/resolve.h"
#include "fedep/message/check.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/algorithm_rules.h"

namespace fedep {
namespace {

// What the next phase is to carry must be what its optimizer keeps.
void check_carried(const std::vector<Phase>& before, const OptimizerSettings& optimizer) {
  const OptimizerSettings& last = before.back().server_optimizer;
  if (std::ranges::equal(find_optimizer(last.name).slots(last),
                         find_optimizer(optimizer.name).slots(optimizer))) {
    return;
  }
  throw InputError(fmt::format(
      "phase.{}.optimizer_state can be carry only with the optimizer of the phase before, "
      "but that is {} and this one {}; make it fresh",
      before.size(), last.name, optimizer.name));
}

[[noreturn]] void refuse(std::size_t phase, std::string_view key, std::string_view why) {
  throw InputError(fmt::format("phase.{}.{} {}", phase, key, why));
}

void check_schedule(std::size_t phase, std::string_view name,
                    const std::optional<RoundSchedule>& schedule, bool must_be_positive) {
  if (!schedule) return;
  const std::string key = fmt::format("schedule.{}", name);
  const bool ratio = schedule->kind == ScheduleKind::steps;
  if ((must_be_positive || ratio) && !(schedule->from > 0 && schedule->to > 0)) {
    refuse(phase, key,
           fmt::format("must go from and to positive numbers{}, but goes from {} to {}",
                       must_be_positive ? "" : " in steps", schedule->from, schedule->to));
  }
}

void check_schedules(std::size_t phase, const PhaseSettings& settings, bool point_estimate) {
  if (!settings.schedule) return;
  const ScheduleSettings& schedule = *settings.schedule;
  if (schedule.server_rate && settings.cooldown) {
    refuse(phase, "schedule.server_rate",
           "and cooldown are two schedules of the server's rate, but it can have one");
  }
  if (schedule.clip && !(settings.clip > 0)) {
    refuse(phase, "schedule.clip", "needs a clip that is not 0");
  }
  if (schedule.alpha && point_estimate) {
    refuse(phase, "schedule.alpha",
           fmt::format("needs an algorithm with an alpha, but {} has none", settings.algorithm));
  }
  check_schedule(phase, "client_rate", schedule.client_rate, true);
  check_schedule(phase, "server_rate", schedule.server_rate, false);
  check_schedule(phase, "clip", schedule.clip, true);
  check_schedule(phase, "alpha", schedule.alpha, true);
}

void check_average(const Recipe& recipe, std::size_t phase, const std::vector<Phase>& before) {
  const PhaseSettings& settings = recipe.phases[phase];
  const bool may_end_early = recipe.stop.converged > 0 && phase + 1 == recipe.phases.size() &&
                             !find_algorithm(settings.algorithm).point_estimate;
  if (may_end_early && settings.average && settings.average->kind == AverageKind::tail) {
    refuse(phase, "average",
           "can be of a tail only where the phase's end is known, but stop.converged may end it "
           "before its last rounds begin: kind = \"exponential\"");
  }
  if (settings.hand_over == HandOver::average && (before.empty() || !before.back().average)) {
    refuse(phase, "hand_over",
           "can be average only where the phase before has one: give that phase average = { … }");
  }
}

DampingSettings damping_of(const ServerSettings& server, const PhaseSettings& phase) {
  DampingSettings damping = phase.damping.value_or(server.damping);
  damping.outside = phase.damping_outside.value_or(server.damping.outside);
  return damping;
}

// What the optimizers of a phase are, and where the recipe has them.
struct PhaseOptimizer {
  OptimizerSettings settings;
  std::string key;
};
PhaseOptimizer server_optimizer(const Recipe& recipe, std::size_t phase) {
  const auto& own = recipe.phases[phase].optimizer;
  if (own) return {*own, fmt::format("phase.{}.optimizer", phase)};
  return {recipe.server.optimizer, "server.optimizer"};
}
PhaseOptimizer factor_optimizer(const Recipe& recipe, std::size_t phase) {
  const auto& of_factors = recipe.server.factor_optimizer;
  if (recipe.phases[phase].optimizer || !of_factors) return server_optimizer(recipe, phase);
  return {*of_factors, "server.factor_optimizer"};
}

// On the server's clock factors make the server's steps, so their optimizers must be one, and nothing
// but these steps may move q.
void check_clock(const Recipe& recipe, std::size_t phase) {
  const PhaseSettings& settings = recipe.phases[phase];
  if (settings.factor_clock != FactorClock::round) return;
  const auto refuse_with = [&](std::string_view why) {
    refuse(phase, "factor_clock", fmt::format("can be round only {}", why));
  };
  const PhaseOptimizer server = server_optimizer(recipe, phase);
  const PhaseOptimizer factor = factor_optimizer(recipe, phase);
  if (server.settings.name != "sgd") {
    refuse_with(fmt::format("with sgd, whose steps add up, but {} is {}", server.key,
                            server.settings.name));
  }
  if (!(factor.settings == server.settings)) {
    refuse_with(fmt::format("where factors make the server's steps, but {} is not {}", factor.key,
                            server.key));
  }
  if (settings.optimizer_state == OptimizerHandover::carry) {
    refuse_with(fmt::format(
        "with fresh optimizers, but phase.{}.optimizer_state is carry: factors have no momentum of "
        "the phase before",
        phase));
  }
  if (settings.guard.mode == GuardMode::floor) {
    refuse_with(fmt::format(
        "where nothing but steps moves q, but phase.{}.guard is floor; count, back_off and skip go "
        "with it",
        phase));
  }
}

// Steps other than sgd's act on single elements of a matrix, which need not stay positive definite;
// with momentum factors and q part.
std::string optimizer_problem(const PhaseOptimizer& optimizer) {
  const OptimizerSettings& settings = optimizer.settings;
  if (settings.name != "sgd") return fmt::format("{} is {}, not sgd", optimizer.key, settings.name);
  if (settings.momentum == 0) return {};
  return fmt::format("{} has momentum {}", optimizer.key, settings.momentum);
}

Family family_of_phase(const Recipe& recipe, std::size_t phase, Family of_method) {
  const InferenceSettings& inference = *recipe.phases[phase].inference;
  const FamilyChoice choice = inference.family;
  if (choice == FamilyChoice::full || of_method == Family::full) {
    const std::string why = full_family_problem(recipe, phase);
    if (!why.empty()) {
      refuse(phase, "inference.family:", "full cannot be had, because " + why);
    }
  }
  if (choice == FamilyChoice::full) return Family::full;
  if (choice == FamilyChoice::automatic) return of_method;
  const Family asked = choice == FamilyChoice::isotropic ? Family::isotropic : Family::diagonal;
  if (asked != of_method) {
    refuse(phase, "inference.family:",
           fmt::format("{} does not have the family {}, which is asked for", inference.name,
                       asked == Family::isotropic ? "isotropic" : "diagonal"));
  }
  return asked;
}

}  // namespace

std::string full_family_problem(const Recipe& recipe, std::size_t phase) {
  const PhaseSettings& settings = recipe.phases[phase];
  const CavityKind cavity = settings.cavity.value_or(find_algorithm(settings.algorithm).cavity);
  if (!recipe.server.prior) return "server.prior is flat";
  if (recipe.server.grid_bits != 64) {
    return fmt::format("server.grid_bits is {}, not 64", recipe.server.grid_bits);
  }
  if (cavity == CavityKind::flat) return fmt::format("phase.{}.cavity is flat", phase);
  if (settings.average) {
    return fmt::format("phase.{}.average has precisions weight by weight", phase);
  }
  if (std::string why = optimizer_problem(server_optimizer(recipe, phase)); !why.empty())
    return why;
  if (!remembers(cavity)) return {};
  return optimizer_problem(factor_optimizer(recipe, phase));
}

double optimizer_scale(const Phase& phase, std::int64_t round, double damping) {
  const double scale = phase.damping.outside ? damping : 1.0;
  const std::int64_t own = round - phase.first_round;
  if (phase.cooldown) return scale * cooldown(*phase.cooldown, own);
  if (!phase.schedule.server_rate) return scale;
  return scale * scheduled_in_round(*phase.schedule.server_rate, own, phase.rounds);
}

std::optional<Phase> phase_in_round(const Phase& phase, std::int64_t round) {
  const ScheduleSettings& schedule = phase.schedule;
  if (!schedule.clip && !schedule.alpha && !schedule.client_rate) return std::nullopt;
  const auto part = [&](const std::optional<RoundSchedule>& of) {
    return of ? scheduled_in_round(*of, round - phase.first_round, phase.rounds) : 1.0;
  };
  Phase now = phase;
  now.clip *= part(schedule.clip);
  now.inference.alpha *= part(schedule.alpha);
  now.client_rate *= part(schedule.client_rate);
  return now;
}

std::vector<Phase> plan_phases(const Recipe& recipe,
                               const std::function<Family(std::string_view)>& family_of) {
  std::vector<Phase> phases;
  std::int64_t first_round = 0;
  for (const PhaseSettings& settings : recipe.phases) {
    const Algorithm& algorithm = find_algorithm(settings.algorithm);
    const InferenceSettings inference = settings.inference.value_or(InferenceSettings{});
    if (!algorithm.point_estimate && inference.name.empty()) {
      throw InputError(fmt::format("phase.{}.inference.name is missing: {} needs one",
                                   phases.size(), algorithm.name));
    }
    const ServerSettings& server = recipe.server;
    const OptimizerSettings optimizer = server_optimizer(recipe, phases.size()).settings;
    check_optimizer(optimizer);
    const OptimizerSettings factor = factor_optimizer(recipe, phases.size()).settings;
    check_optimizer(factor);
    const bool carries = settings.optimizer_state == OptimizerHandover::carry;
    if (carries && !phases.empty()) check_carried(phases, optimizer);
    check_algorithm(recipe, phases.size());
    check_schedules(phases.size(), settings, algorithm.point_estimate);
    check_average(recipe, phases.size(), phases);
    Phase phase{
        .algorithm = &algorithm,
        .first_round = first_round,
        .rounds = settings.rounds,
        .family = algorithm.point_estimate
                      ? Family::isotropic
                      : family_of_phase(recipe, phases.size(), family_of(inference.name)),
        .cavity = settings.cavity.value_or(algorithm.cavity),
        .share = settings.share,
        .weight = settings.weight.value_or(algorithm.weight),
        .damping = damping_of(server, settings),
        .clip = settings.clip,
        .guard = settings.guard,
        .delta = {.rho = inference.rho},
        .factors = factor_start(recipe, phases.size()),
        .alpha = inference.alpha,
        .clock = settings.factor_clock,
        .carries_optimizer = carries,
        .server_optimizer = optimizer,
        .factor_optimizer = factor,
        .cooldown = settings.cooldown,
        .schedule = settings.schedule.value_or(ScheduleSettings{}),
        .average = settings.average,
        .hand_over = settings.hand_over,
        .clients_per_round = std::size_t(server.clients_per_round),
        .grid_bits = server.grid_bits,
        .inference = inference,
    };
    apply_algorithm(settings, phase);
    // Averages weighted by examples are averages already; rules that divide by K would do so twice.
    const bool divides_by_k = phase.damping.rule == DampingRule::one_over_k ||
                              phase.damping.rule == DampingRule::decaying;
    if (phase.weight == WeightRule::examples && divides_by_k) {
      phase.damping.rule = DampingRule::none;
    }
    if (phase.stateful()) check_clock(recipe, phases.size());
    first_round = phase.end_round();
    phases.push_back(std::move(phase));
  }
  return phases;
}

}  // namespace fedep
