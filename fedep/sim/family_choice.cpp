#include "fedep/sim/family_choice.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/config/rule.h"
#include "fedep/inference/method.h"
#include "fedep/inference/rows/row_method.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/round/phase.h"
#include "fedep/sim/rows/client_rows.h"
#include "fedep/sim/rows/site_model.h"

namespace fedep {
namespace {

std::string model_problem(const Recipe& recipe, const Task& task, std::size_t most) {
  const Dataset* const data = task.data();
  if (data == nullptr) return fmt::format("data {} have no rows", recipe.data.name);
  if (!find_model(recipe.model.name).is_linear) {
    return fmt::format("model.name is {}, not linear", recipe.model.name);
  }
  if (data->info().sparse) return fmt::format("features of {} are sparse", recipe.data.name);
  const std::size_t weights = size_of(task.layout());
  if (weights > most) return fmt::format("the model has {} weights, more than {}", weights, most);
  return {};
}

std::string method_problem(const InferenceSettings& inference, TargetKind target) {
  const std::string_view name =
      inference.name.empty() ? kDefaultRowMethod : std::string_view(inference.name);
  const RowMethod* const method = find_row_method(name);
  if (method == nullptr) return fmt::format("{} has no full precision", name);
  const bool classes = target == TargetKind::label;
  if (classes && method->tilted_of_classes == nullptr) {
    return fmt::format("{} has none for classes; name = \"laplace\" has", name);
  }
  if (!classes && !has_rows(target)) {
    return "the outcome is not yes or no, a number, a count or a class";
  }
  return method->problem == nullptr ? std::string() : method->problem(inference);
}

// Why phase `i` cannot be full, whoever asks, with so many weights; empty if it can.
std::string problem_of(const Recipe& recipe, const Task& task, std::size_t i, std::size_t most) {
  std::string why = model_problem(recipe, task, most);
  if (why.empty()) why = full_family_problem(recipe, i);
  if (why.empty()) {
    why = method_problem(recipe.phases[i].inference.value_or(InferenceSettings{}),
                         task.data()->info().target);
  }
  return why;
}

std::string problem_unasked(const Recipe& recipe, const Task& task, std::size_t i) {
  const Dataset* const data = task.data();
  std::string why = model_problem(recipe, task, kMostWeightsUnasked);
  if (why.empty() && !has_rows(data->info().target)) {
    why = "the outcome is not yes or no, a number or a count";
  }
  if (why.empty()) why = problem_of(recipe, task, i, kMostWeightsUnasked);
  if (why.empty() && data->info().table == nullptr) {
    why = fmt::format("data {} are no table", recipe.data.name);
  }
  return why;
}

bool has_rate_of_its_own(const PhaseSettings& phase) {
  return phase.cooldown || (phase.schedule && phase.schedule->server_rate);
}

// Answers that are drawn leave their noise in q while steps are long. Steps fall to a tenth in the phase's
// third quarter, so that its last one averages over ten times as many draws.
CooldownSettings cooldown_of_draws(int rounds) {
  return {.after = rounds / 2, .rounds = std::max(1, rounds / 4), .to = 0.1};
}

// Makes it so, and says by what.
std::string full_by(PhaseSettings& phase, std::string_view asked, bool extras) {
  if (!phase.inference) phase.inference.emplace();
  InferenceSettings& inference = *phase.inference;
  inference.family = FamilyChoice::full;
  if (inference.name.empty()) inference.name = kDefaultRowMethod;
  // A client may take more out of log_site_sd than the others have put in.
  if (extras && phase.guard.mode == GuardMode::count) phase.guard.mode = GuardMode::back_off;
  std::string text = fmt::format("family full{}, by {}", asked, inference.name);
  if (find_row_method(inference.name)->draws && !has_rate_of_its_own(phase)) {
    phase.cooldown = cooldown_of_draws(phase.rounds);
    text += fmt::format(", steps falling to {} from its round {} on", phase.cooldown->to,
                        phase.cooldown->after);
  }
  return text;
}

// Decides for one phase and says why.
std::string decide_phase(Recipe& recipe, const Task& task, std::size_t i) {
  PhaseSettings& phase = recipe.phases[i];
  const InferenceSettings given = phase.inference.value_or(InferenceSettings{});
  const bool needs_rows = is_row_method_only(given.name);
  switch (given.family) {
    case FamilyChoice::isotropic:
    case FamilyChoice::diagonal:
      if (needs_rows) {
        throw InputError(fmt::format("phase.{}.inference.family must be full with {}, but is {}", i,
                                     given.name, *word_for(given.family)));
      }
      return fmt::format("family {}, as asked", *word_for(given.family));
    case FamilyChoice::automatic:
      if (needs_rows || has_extras(recipe.model)) break;
      if (const std::string why = problem_unasked(recipe, task, i); !why.empty()) {
        if (given.name.empty()) {
          throw InputError(
              fmt::format("phase.{}.inference.name is missing: {} needs one, because {}", i,
                          phase.algorithm, why));
        }
        return fmt::format("the family that {} has, because {}", given.name, why);
      }
      return full_by(phase, "", false);
    case FamilyChoice::full:
      break;
  }
  if (const std::string why = problem_of(recipe, task, i, kMostWeightsOfAMatrix); !why.empty()) {
    if (has_extras(recipe.model)) {
      throw InputError(
          fmt::format("{} needs the family full in phase.{}, which cannot be had, because {}",
                      extras_key(recipe.model), i, why));
    }
    throw InputError(
        fmt::format("phase.{}.inference.family: full cannot be had, because {}", i, why));
  }
  const bool asked = given.family == FamilyChoice::full || needs_rows;
  return full_by(phase, asked ? ", as asked" : "", has_extras(recipe.model));
}

// Factors begin with alpha N before any round, so that a schedule is of what visits read.
void check_alpha_schedule(const PhaseSettings& phase, std::size_t i) {
  if (!phase.schedule || !phase.schedule->alpha || reads_alpha(*phase.inference)) return;
  const InferenceSettings& inference = *phase.inference;
  if (!find_algorithm(phase.algorithm).methods[0].empty()) {
    throw InputError(
        fmt::format("phase.{}.schedule.alpha must be left out: no method of {} reads alpha", i,
                    phase.algorithm));
  }
  const bool full = inference.family == FamilyChoice::full;
  throw InputError(
      fmt::format("phase.{}.schedule.alpha must go with a method whose precision alpha sets, "
                  "scaled_identity or "
                  "sample_moments with rescale, but {}{} does not read it",
                  i, inference.name, full ? " of the full family" : ""));
}

}  // namespace

FamilyDecision decide_families(const Recipe& recipe, const Task& task) {
  FamilyDecision decision{.recipe = recipe};
  for (std::size_t i = 0; i < recipe.phases.size(); ++i) {
    const Algorithm& algorithm = find_algorithm(recipe.phases[i].algorithm);
    if (algorithm.needs != Needs::tilted) continue;
    decision.reasons.push_back(fmt::format("phase.{} ({}): {}", i, algorithm.name,
                                           decide_phase(decision.recipe, task, i)));
    check_alpha_schedule(decision.recipe.phases[i], i);
  }
  return decision;
}

Recipe with_families_of(const Recipe& there, Recipe given) {
  const std::size_t both = std::min(there.phases.size(), given.phases.size());
  for (std::size_t i = 0; i < both; ++i) {
    const auto& kept = there.phases[i].inference;
    auto& open = given.phases[i].inference;
    if (!kept || kept->family != FamilyChoice::full) continue;
    const RowMethod* const method = find_row_method(kept->name);
    if (method != nullptr && method->draws && !has_rate_of_its_own(given.phases[i])) {
      given.phases[i].cooldown = there.phases[i].cooldown;
    }
    GuardSettings& guard = given.phases[i].guard;
    if (has_extras(given.model) && guard.mode == GuardMode::count) guard = there.phases[i].guard;
    if (open && open->family != FamilyChoice::automatic) continue;
    if (!open) open.emplace();
    open->family = FamilyChoice::full;
    if (open->name.empty()) open->name = kept->name;
  }
  return given;
}

Recipe decided_as_before(const Recipe& there, const Recipe& given, Recipe decided) {
  Recipe kept = with_families_of(there, given);
  const std::size_t both = std::min(there.phases.size(), given.phases.size());
  std::move(kept.phases.begin(), kept.phases.begin() + std::ptrdiff_t(both),
            decided.phases.begin());
  return decided;
}

void refuse_full_family(const Recipe& decided, std::string_view device) {
  for (std::size_t i = 0; i < decided.phases.size(); ++i) {
    const auto& inference = decided.phases[i].inference;
    if (!inference || inference->family != FamilyChoice::full) continue;
    throw InputError(fmt::format(
        "phase.{}.inference.family: full runs on the CPU, but the device is {}; family = "
        "\"diagonal\" runs there",
        i, device));
  }
}

}  // namespace fedep
