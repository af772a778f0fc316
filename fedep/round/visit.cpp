#include "fedep/round/visit.h"

#include <cmath>

#include "fedep/algorithm/cavity.h"
#include "fedep/message/check.h"
#include "fedep/optim/clip.h"
#include "fedep/optim/guard.h"

namespace fedep {
namespace {

SiteState unvisited_state(const RoundTask& round, const ClientInfo& client) {
  const Message& per_example = round.unvisited.per_example;
  SiteState state;
  state.factor = per_example.size() == 0 ? flat_like(round.global.eta(), round.phase.family)
                                         : power(per_example, float(client.examples));
  state.optimizer = initial_state(round.phase.factor_optimizer, state.factor);
  return state;
}

void guard_cavity(PreparedVisit& prepared) {
  const RoundTask& round = prepared.visit.round;
  const bool may_be_flat = round.phase.cavity == CavityKind::flat;
  if (round.phase.algorithm->point_estimate || may_be_flat) return;
  // The very first cavities of a flat start are flat and meant to be.
  if (!is_proper(round.global)) return;
  prepared.numbers.improper_cavity = count_improper(round.global, prepared.visit.cavity);
  if (round.phase.guard.mode == GuardMode::count) return;
  const Message wanted = prepared.visit.cavity;
  prepared.skipped = guard(round.phase.guard, round.global, prepared.visit.cavity).skipped;
  if (!(prepared.visit.cavity == wanted)) {
    prepared.divisor = product(prepared.visit.cavity, quotient(round.global, wanted));
  }
}

}  // namespace

PreparedVisit prepare_visit(const RoundTask& round, const ClientTask& task,
                            const ClientInfo& client, const SiteStore* sites) {
  PreparedVisit prepared{
      .visit = {round, client, {}}, .site = {}, .numbers = {}, .skipped = false, .divisor = {}};
  prepared.numbers.examples = client.examples;
  if (round.phase.stateful()) {
    if (sites == nullptr) throw InputError("prepare_visit: a stateful phase needs a site store");
    prepared.site = sites->get(client.key);
    if (!prepared.site) prepared.site = unvisited_state(round, client);
  }
  const Message& factor = prepared.site ? prepared.site->factor : round.global;
  prepared.visit.cavity = cavity(round.phase.cavity, round.global, round.prior, factor, task.share);
  guard_cavity(prepared);
  return prepared;
}

Report finish_visit(PreparedVisit prepared, const ClientTask& task, const ClientRun& run,
                    SiteStore* sites) {
  const RoundTask& round = prepared.visit.round;
  const Phase& phase = round.phase;
  Report report{.client = task.client,
                .outcome = Outcome::delta,
                .delta = {},
                .weight = task.weight,
                .numbers = prepared.numbers,
                .error = {}};
  const Message& divisor = prepared.divisor ? *prepared.divisor : round.global;
  // Without data there is nothing to say, whatever a method would make of it.
  Message delta = prepared.visit.client.examples == 0
                      ? flat_like(round.global.eta(), round.global.family())
                      : phase.algorithm->delta(run, divisor, phase.delta);
  if (delta.family() != round.global.family()) delta = to_diagonal(delta);

  report.numbers.delta_norm = joint_norm(delta);
  const double clip = clip_factor(report.numbers.delta_norm, phase.clip);
  report.numbers.clipped = clip < 1;
  const double damping = phase.damping.outside ? 1.0 : round.damping;
  std::optional<GridDelta> rounded = to_grid(round.grid, delta, clip * task.weight * damping);
  if (!rounded) {
    report.outcome = Outcome::outside_grid;
    return report;
  }
  if (prepared.site) {
    const double scale = phase.damping.outside ? round.damping : 1.0;
    advance(phase.factor_optimizer, prepared.site->optimizer, prepared.site->factor,
            from_grid(round.grid, *rounded), scale);
    sites->propose(prepared.visit.client.key, round.round, std::move(*prepared.site));
  }
  report.delta = std::move(*rounded);
  return report;
}

Report play_visit(const RoundTask& round, const ClientTask& task, const ClientInfo& client,
                  SiteStore* sites, LocalInference& inference) {
  const char* stage = "preparing its cavity";
  try {
    PreparedVisit prepared = prepare_visit(round, task, client, sites);
    if (prepared.skipped) {
      return {.client = task.client,
              .outcome = Outcome::skipped,
              .delta = {},
              .weight = task.weight,
              .numbers = prepared.numbers,
              .error = {}};
    }
    stage = "local inference";
    const ClientRun run = inference.infer(prepared.visit, prepared.numbers);
    stage = "making its delta";
    return finish_visit(std::move(prepared), task, run, sites);
  } catch (const InputError& error) {
    throw InputError(
        fmt::format("round {}, client {}, {}: {}", round.round, client.id, stage, error.what()));
  } catch (const std::exception& error) {
    throw RunError(
        fmt::format("round {}, client {}, {}: {}", round.round, client.id, stage, error.what()));
  }
}

void settle_visits(const RoundTask& round, const Population& population,
                   std::span<const std::size_t> taken, double scale, SiteStore& sites) {
  std::vector<std::uint64_t> keys;
  for (const std::size_t client : taken) {
    const ClientInfo& info = population[client];
    keys.push_back(info.key);
    if (scale == 1) continue;
    const SiteState before = sites.get(info.key).value_or(unvisited_state(round, info));
    SiteState after = sites.proposed(info.key).value();
    const Message step = quotient(after.factor, before.factor);
    after.factor = product(before.factor, power(step, float(scale)));
    sites.propose(info.key, round.round, std::move(after));
  }
  sites.settle(round.round, keys);
}

}  // namespace fedep
