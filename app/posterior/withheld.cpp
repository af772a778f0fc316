#include "app/posterior/withheld.h"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/inference/method.h"

namespace fedep {
namespace {

const PhaseSettings& phase_of(const PosteriorFacts& facts) {
  return facts.recipe.phases[facts.phase];
}
CavityKind cavity_of(const PosteriorFacts& facts) {
  const PhaseSettings& phase = phase_of(facts);
  return phase.cavity.value_or(find_algorithm(phase.algorithm).cavity);
}

std::string set(const PosteriorFacts& facts, std::string_view key, std::string_view value) {
  return fmt::format("phase.{}.{} = {}", facts.phase, key, value);
}

// Rounds of the phase in which something happened, as far as the log goes.
struct Happened {
  bool told = false;  // the log has all of the phase's rounds
  std::int64_t rounds = 0;
};
Happened count_rounds(const PosteriorFacts& facts, std::int64_t RoundRecord::*what) {
  Happened out;
  if (facts.rounds == nullptr) return out;
  std::int64_t first = 0;
  for (std::size_t i = 0; i < facts.phase; ++i) first += facts.recipe.phases[i].rounds;
  std::int64_t begin = 0;  // a record of a thinned log stands for several rounds
  for (const RoundRecord& record : *facts.rounds) {
    const bool counts = record.round >= first && begin < facts.round;
    out.rounds += counts && record.*what > 0;
    begin = record.round + 1;
  }
  out.told = !facts.rounds->empty() && facts.rounds->back().round + 1 >= facts.round;
  return out;
}

std::string not_trusted(const PosteriorFacts& facts) { return facts.distrust; }

std::string improper(const PosteriorFacts& facts) {
  if (facts.proper) return {};
  return fmt::format(
      "the posterior is improper: some of its precisions are not positive ({}, or smaller steps, "
      "docs/stability.md)",
      set(facts, "guard", "\"back_off\""));
}

std::string set_by_method(const PosteriorFacts& facts) {
  const std::optional<InferenceSettings>& inference = phase_of(facts).inference;
  if (facts.full || !inference) return {};  // methods on rows have no such settings
  const auto method = std::ranges::find(methods(), inference->name, &Method::name);
  if (method == methods().end() || method->precision_setting == nullptr) return {};
  const std::optional<PrecisionSetting> found = method->precision_setting(*inference);
  if (!found) return {};
  return fmt::format("{}; {} gives inferred ones", found->why,
                     set(facts, "inference." + found->key, found->value));
}

// Batches of squared gradients that a visit had on average: what its chain had, epoch by epoch, or the
// steps of a method's own chain. Without a log there was at least one an epoch.
double batches_of_a_visit(const PosteriorFacts& facts, const Method& method) {
  const double epochs =
      method.own_chain ? facts.recipe.client.epochs : phase_of(facts).inference->epochs;
  double steps = 0, visits = 0;
  if (facts.rounds != nullptr) {
    for (const RoundRecord& round : *facts.rounds) {
      if (round.round >= facts.round) break;
      steps += double(round.client_steps);
      visits += double(round.clients - round.dropped);
    }
  }
  const double an_epoch = visits > 0 ? steps / visits / facts.recipe.client.epochs : 1;
  return epochs * std::max(1.0, an_epoch);
}

std::string begun_by_method(const PosteriorFacts& facts) {
  constexpr double kMost = 0.05;
  const std::optional<InferenceSettings>& inference = phase_of(facts).inference;
  if (facts.full || !inference) return {};
  const auto method = std::ranges::find(methods(), inference->name, &Method::name);
  if (method == methods().end() || method->start_left == nullptr) return {};
  const double batches = batches_of_a_visit(facts, *method);
  const double left = method->start_left(*inference, batches);
  if (left <= kMost) return {};
  const int had = method->own_chain ? facts.recipe.client.epochs : inference->epochs;
  int epochs = had;
  while (epochs < 1'000'000 && method->start_left(*inference, batches * epochs / had) > kMost) {
    epochs *= 2;
  }
  const std::string longer = fmt::format("{}", epochs);
  return fmt::format(
      "precisions are scaled: {:.0f} % of them is inferred, for the rest stands initial_scale = "
      "{}, where "
      "a visit's running mean begins; {} gives inferred ones",
      100 * (1 - left), inference->initial_scale,
      method->own_chain ? "client.epochs = " + longer : set(facts, "inference.epochs", longer));
}

// A sum of what all clients inferred is what a posterior is.
std::string no_product(const PosteriorFacts& facts) {
  const PhaseSettings& phase = phase_of(facts);
  const CavityKind cavity = cavity_of(facts);
  const auto use = [&](std::string_view key, std::string_view value, std::string_view why) {
    return fmt::format("{}; {} gives their product", why, set(facts, key, value));
  };
  if (cavity == CavityKind::whole) {
    return use("cavity", "\"share\"", "every visit counts its client's data once more");
  }
  if (cavity == CavityKind::flat) {
    return use("cavity", "\"share\"", "the posterior is an average of the clients' own");
  }
  const Algorithm& algorithm = find_algorithm(phase.algorithm);
  if (cavity == CavityKind::share &&
      phase.weight.value_or(algorithm.weight) == WeightRule::examples) {
    return use("weight", "\"equal\"", "what clients inferred is weighted by their examples");
  }
  return {};
}

std::string tempered(const PosteriorFacts& facts) {
  const double temperature = phase_of(facts).temperature.value_or(1);
  if (temperature == 1) return {};
  return fmt::format("every row counts as {:.4g} rows; {} counts it once", 1 / temperature,
                     set(facts, "temperature", "1"));
}

std::string clipped(const PosteriorFacts& facts) {
  if (!(phase_of(facts).clip > 0)) return {};
  const Happened found = count_rounds(facts, &RoundRecord::clipped);
  if (found.rounds > 0) {
    return fmt::format(
        "clients' answers, precisions among them, were clipped in {} {}; {} clips none",
        found.rounds, found.rounds == 1 ? "round" : "rounds", set(facts, "clip", "0"));
  }
  if (found.told) return {};
  return fmt::format(
      "whether answers were clipped is not known without the run's log.jsonl; {} clips none",
      set(facts, "clip", "0"));
}

std::string floored(const PosteriorFacts& facts) {
  const GuardSettings& guard = phase_of(facts).guard;
  if (guard.mode != GuardMode::floor) return {};
  // The log counts improper precisions. One that was positive is raised by less than the floor, unseen.
  const bool far_above = facts.least_precision > 20 * guard.floor;
  const Happened found = count_rounds(facts, &RoundRecord::guarded);
  if (found.told && found.rounds == 0 && far_above) return {};
  return fmt::format(
      "precisions were, or may have been, raised to guard_floor = {}; {} raises none", guard.floor,
      set(facts, "guard", "\"back_off\""));
}

// A precision in float32 is not inverted reliably beyond this.
std::string ill_conditioned(const PosteriorFacts& facts) {
  constexpr double kMost = 1e6;
  if (!facts.full || facts.condition <= kMost) return {};
  return fmt::format(
      "the posterior's precision matrix has a condition number of {:.2g}, more than {:.0e}: "
      "columns that nearly determine each other, or of very different scales (leave one out of "
      "data.features, or give server.prior a larger precision)",
      facts.condition, kMost);
}

constexpr std::array kReasonsOfRounds{set_by_method, begun_by_method, no_product,
                                      tempered,      clipped,         floored};
constexpr std::array kReasons{ill_conditioned, not_trusted, improper};

}  // namespace

std::string why_withheld(const PosteriorFacts& facts) {
  for (const auto reason : kReasonsOfRounds) {
    if (std::string why = reason(facts); facts.of_rounds && !why.empty()) return why;
  }
  for (const auto reason : kReasons) {
    if (std::string why = reason(facts); !why.empty()) return why;
  }
  return {};
}

}  // namespace fedep
