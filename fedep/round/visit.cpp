#include "fedep/round/visit.h"

#include <cmath>
#include <limits>

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

// cavity() in one pass over memory instead of three where a share is taken out, with the same bits.
Message cavity_of(const RoundTask& round, const Message& factor, double share) {
  if (round.phase.cavity != CavityKind::share || round.prior.family() != round.global.family()) {
    return cavity(round.phase.cavity, round.global, round.prior, factor, share);
  }
  check_in("cavity", "share", share, 0, 1);
  Message out = round.global;
  const auto take_out = [part = float(share)](std::span<const float> prior, std::span<float> q) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] -= part * (q[i] - prior[i]);
  };
  take_out(round.prior.eta().span(), out.eta().span());
  take_out(round.prior.lambda_span(), out.lambda_span());
  return out;
}

// Whether the guard has nothing to count or to change, found out in one pass.
bool is_in_order(const GuardSettings& settings, const Message& cavity) {
  const float least = settings.mode == GuardMode::floor ? float(settings.floor) : 0.0f;
  const float most = std::numeric_limits<float>::max();
  unsigned wrong = 0;  // no early end and no bool, so that the loop vectorises
  for (const float x : cavity.lambda_span()) {
    wrong |= unsigned(!(x > 0)) | unsigned(!(x >= least)) | unsigned(!(x <= most));
  }
  return wrong == 0;
}

void guard_cavity(PreparedVisit& prepared) {
  const RoundTask& round = prepared.visit.round;
  const bool may_be_flat = round.phase.cavity == CavityKind::flat;
  if (round.phase.algorithm->point_estimate || may_be_flat) return;
  if (is_in_order(round.phase.guard, prepared.visit.cavity)) return;
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
  prepared.visit.cavity = cavity_of(round, factor, task.share);
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
    advance(phase.factor_optimizer, prepared.site->optimizer, prepared.site->factor,
            from_grid(round.grid, *rounded), optimizer_scale(phase, round.round, round.damping));
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
