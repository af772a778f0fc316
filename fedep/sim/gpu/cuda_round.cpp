#include "fedep/sim/gpu/cuda_round.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "fedep/algorithm/cavity.h"
#include "fedep/algorithm/damping.h"
#include "fedep/algorithm/fed_pa.h"
#include "fedep/cuda/device/vector_kernels.h"
#include "fedep/cuda/round/round_kernels.h"
#include "fedep/cuda/round/sample_moves.h"  // posterior_delta() finds it
#include "fedep/message/check.h"
#include "fedep/optim/clip.h"

namespace fedep {

struct CudaRounds::Asked {
  ClientTask task;
  const ClientInfo* info = nullptr;
  DeviceSite* site = nullptr;  // of a stateful phase
  DeviceMessage cavity;
  // What the tilted distribution is divided by, if not q (round/visit.h).
  std::optional<DeviceMessage> divisor;
  bool skipped = false;
  VisitNumbers numbers;
};

namespace {

// A factor as it is before the first visit, into its arrays: per_example to the power of n.
void fill_unvisited(const SiteShape& shape, const OptimizerSettings& optimizer,
                    const DeviceMessage& per_example, float n, DeviceSite& site) {
  const auto scaled = [&](const DeviceVector& from, float* to) {
    launch_map(MapOp::times, from.data(), n, 0, to, shape.size, device_stream());
  };
  const auto fill = [&](float* to, float value) {
    launch_fill(to, value, shape.size, device_stream());
  };
  const bool flat = per_example.size() == 0;
  const bool diagonal = shape.family == Family::diagonal;
  if (flat) {
    fill(site.eta(shape, 0), 0);
    if (diagonal) fill(site.lambda(shape, 0), 0);
  } else {
    scaled(per_example.eta(), site.eta(shape, 0));
    if (diagonal) scaled(per_example.lambda_vector(), site.lambda(shape, 0));
  }
  if (!diagonal) site.numbers[0] = flat ? 0 : n * per_example.lambda_scalar();
  for (std::size_t i = 0; i < shape.slots; ++i) {
    const float value = find_optimizer(optimizer.name).initial_value(optimizer, i);
    fill(site.eta(shape, 1 + i), value);
    if (diagonal) {
      fill(site.lambda(shape, 1 + i), value);
    } else {
      site.numbers[1 + i] = value;
    }
  }
  site.steps = 0;
}

}  // namespace

void CudaRounds::take(const ServerState& state) {
  if (round_ == state.round && phase_ == state.phase) return;
  initial_ = to_device(state.initial);
  prior_ = to_device(state.prior);
  global_ = to_device(state.global);
  per_example_ = to_device(state.unvisited.per_example);
  optimizer_ = to_device(state.optimizer);
  facts_ = facts_of({&global_})[0];
  point_.reset();
  round_ = state.round;
  phase_ = state.phase;
}

void CudaRounds::bring_home(ServerState& state) {
  if (round_ != state.round || phase_ != state.phase) return;  // the host's is all there is
  state.global = to_host(global_);
  state.optimizer = to_host(optimizer_);
}

const DeviceMessage& CudaRounds::global(const ServerState& state) {
  take(state);
  return global_;
}

const DeviceVector& CudaRounds::point(const ServerState& state) {
  take(state);
  if (point_) return *point_;
  if (facts_.proper) {
    point_ = global_.isotropic() ? global_.eta() / global_.lambda_scalar()
                                 : global_.eta() / global_.lambda_vector();
  } else if (initial_.size() == global_.size()) {
    point_ = estimate_points(global_, initial_);
  } else {
    throw RunError(fmt::format("round {}: q must be finite, but has NaN or infinity", state.round));
  }
  return *point_;
}

void CudaRounds::find_sites(const Phase& phase, std::vector<Asked>& asked, std::int64_t round) {
  if (sites_ == nullptr) throw InputError("CudaRounds: a stateful phase needs a site store");
  check_optimizer(phase.factor_optimizer);
  const OptimizerSettings& optimizer = phase.factor_optimizer;
  shape_ = {.size = global_.size(),
            .family = global_.family(),
            .slots = find_optimizer(optimizer.name).slots(optimizer).size()};
  sites_->begin(shape_, round);
  for (Asked& client : asked) {
    client.site = sites_->find(client.info->key);
    if (client.site != nullptr) continue;
    client.site = &sites_->add(client.info->key);
    fill_unvisited(shape_, optimizer, per_example_, float(client.info->examples), *client.site);
  }
  if (round + 1 >= phase.end_round()) return;
  std::vector<std::uint64_t> next;
  for (const std::size_t client :
       sample_clients(seed_, round + 1, population_.size(), phase.clients_per_round)) {
    next.push_back(population_[client].key);
  }
  sites_->prefetch(next);
}

// cavity.h's formulas, for all clients at once; of `share`, q/q_0 is made once.
void CudaRounds::remove_factors(const Phase& phase, std::vector<Asked>& asked) const {
  const bool own = phase.cavity == CavityKind::own_factor, diagonal = !global_.isotropic();
  const DeviceMessage all_factors = own ? DeviceMessage() : quotient(global_, prior_);
  if (!own && all_factors.family() != global_.family())
    fail("cavity", "q_0", "of q's family", "not");
  const std::size_t size = global_.size();
  std::vector<gpu::RemovalRow> rows;
  for (Asked& client : asked) {
    if (!own) check_in("average_factor", "share", client.task.share, 0, 1);
    const float share = own ? 1.0f : float(client.task.share);
    const auto remove = [&](const DeviceVector& whole, const float* part) {
      DeviceVector left(size);
      rows.push_back({whole.data(), part, share, left.data()});
      return left;
    };
    DeviceSite* const site = client.site;
    DeviceVector eta = remove(global_.eta(), own ? site->eta(shape_, 0) : all_factors.eta().data());
    if (diagonal) {
      client.cavity = {std::move(eta),
                       remove(global_.lambda_vector(),
                              own ? site->lambda(shape_, 0) : all_factors.lambda_vector().data())};
    } else {
      const float part = share * (own ? site->numbers[0] : all_factors.lambda_scalar());
      client.cavity = {std::move(eta), global_.lambda_scalar() - part};
    }
  }
  const DeviceArray<gpu::RemovalRow> there(rows);
  gpu::remove_factors(there.data(), rows.size(), size, device_stream());
}

void CudaRounds::make_cavities(const Phase& phase, std::vector<Asked>& asked) const {
  if (phase.cavity == CavityKind::own_factor || phase.cavity == CavityKind::share) {
    return remove_factors(phase, asked);
  }
  // A chain that is told nothing but where to start needs no vectors for that.
  if (phase.cavity == CavityKind::flat && phase.algorithm->point_estimate) return;
  for (Asked& client : asked) {
    client.cavity = cavity(phase.cavity, global_, prior_, global_, client.task.share);
  }
}

void CudaRounds::guard_cavities(const Phase& phase, std::vector<Asked>& asked) const {
  const bool may_be_flat = phase.cavity == CavityKind::flat;
  if (phase.algorithm->point_estimate || may_be_flat) return;
  // The very first cavities of a flat start are flat and meant to be.
  if (!facts_.proper) return;
  std::vector<const DeviceMessage*> cavities;
  for (const Asked& client : asked) cavities.push_back(&client.cavity);
  const std::vector<std::size_t> counts = count_improper(global_, cavities);
  for (std::size_t k = 0; k < asked.size(); ++k) {
    Asked& client = asked[k];
    client.numbers.improper_cavity = counts[k];
    const GuardMode mode = phase.guard.mode;
    if (mode == GuardMode::count || (counts[k] == 0 && mode != GuardMode::floor)) continue;
    const DeviceMessage wanted = client.cavity;
    client.skipped = guard(phase.guard, global_, client.cavity).skipped;
    if (!same(client.cavity, wanted)) {
      client.divisor = product(client.cavity, quotient(global_, wanted));
    }
  }
}

std::vector<CudaRounds::Asked> CudaRounds::prepare(const Phase& phase,
                                                   const std::vector<ClientTask>& tasks,
                                                   std::int64_t round) {
  std::vector<Asked> asked(tasks.size());
  for (std::size_t k = 0; k < tasks.size(); ++k) {
    asked[k].task = tasks[k];
    asked[k].info = &population_[tasks[k].client];
    asked[k].numbers.examples = asked[k].info->examples;
  }
  if (phase.stateful()) find_sites(phase, asked, round);
  make_cavities(phase, asked);
  guard_cavities(phase, asked);
  return asked;
}

// One run per client asked; those skipped have an empty one.
std::vector<ClientRunOf<DeviceVector>> CudaRounds::infer(const Phase& phase, std::int64_t round,
                                                         std::vector<Asked>& asked) {
  std::vector<CohortVisit> visits;
  std::vector<VisitNumbers> numbers;
  for (Asked& client : asked) {
    if (client.skipped) continue;
    visits.push_back({*client.info, client.task.client, std::move(client.cavity)});
    numbers.push_back(client.numbers);
  }
  std::vector<ClientRunOf<DeviceVector>> inferred;
  if (!visits.empty()) {
    try {
      inferred = inference_.infer(seed_, round, phase, *point_, std::move(visits), numbers);
    } catch (const InputError& error) {
      throw InputError(fmt::format("round {}, local inference: {}", round, error.what()));
    } catch (const std::exception& error) {
      throw RunError(fmt::format("round {}, local inference: {}", round, error.what()));
    }
    check_same_size("local inference", "number of runs", numbers.size(), inferred.size());
  }
  std::vector<ClientRunOf<DeviceVector>> runs;
  std::size_t next = 0;
  for (Asked& client : asked) {
    if (client.skipped) {
      runs.emplace_back();
      continue;
    }
    client.numbers = numbers[next];
    runs.push_back(std::move(inferred[next++]));
  }
  return runs;
}

// algorithm.h's deltas.
void CudaRounds::add_delta(const Phase& phase, const Asked& client,
                           const ClientRunOf<DeviceVector>& run, RoundDeltas& deltas) const {
  const Needs needs = phase.algorithm->needs;
  if (client.skipped || client.info->examples == 0) {
    deltas.add_flat();  // without data there is nothing to say
  } else if (needs == Needs::tilted) {
    deltas.add_quotient(run.tilted, client.divisor ? *client.divisor : global_);
  } else if (needs == Needs::samples && !run.samples.empty()) {
    deltas.add_points(
        posterior_delta(std::span<const DeviceVector>(run.samples), *point_, phase.delta.rho));
  } else {
    deltas.add_difference(run.last, *point_);
  }
}

// q after the server's step on `total`; q itself stays, since deltas refer to it.
DeviceMessage CudaRounds::stepped(const Phase& phase, const DeviceMessage& total, double scale,
                                  GuardOutcome& outcome) {
  const bool may_skip =
      phase.guard.mode == GuardMode::skip || phase.guard.mode == GuardMode::back_off;
  DeviceOptimizerState before = may_skip ? optimizer_ : DeviceOptimizerState{};
  DeviceMessage next = global_;
  advance(phase.server_optimizer, optimizer_, next, total, scale);
  if (!phase.algorithm->point_estimate) {
    outcome = guard(phase.guard, global_, next);
    if (outcome.skipped) optimizer_ = std::move(before);
  }
  return next;
}

RoundNumbers CudaRounds::play(ServerState& state, const Phase& phase) {
  take(state);
  const std::int64_t round = state.round;
  const std::vector<ClientTask> tasks =
      make_tasks(sample_clients(seed_, round, population_.size(), phase.clients_per_round), phase,
                 population_);
  const double delta = damping(phase.damping, tasks.size(), std::size_t(round - phase.first_round));
  point(state);
  if (phase.algorithm->point_estimate && !facts_.proper) check_proper("mean", "message", global_);
  const Grid grid = choose_grid(state.grid, grid_choice(phase, tasks, delta), facts_.largest);

  std::vector<Asked> asked = prepare(phase, tasks, round);
  const std::vector<ClientRunOf<DeviceVector>> runs = infer(phase, round, asked);

  RoundDeltas deltas(global_);
  for (std::size_t k = 0; k < asked.size(); ++k) add_delta(phase, asked[k], runs[k], deltas);
  const std::vector<double> norms = deltas.measure();
  std::vector<Report> reports;
  for (std::size_t k = 0; k < asked.size(); ++k) {
    Report report{.client = tasks[k].client,
                  .outcome = Outcome::skipped,
                  .delta = {},
                  .weight = tasks[k].weight,
                  .numbers = asked[k].numbers,
                  .error = {}};
    if (!asked[k].skipped) {
      report.numbers.delta_norm = norms[k];
      const double clip = clip_factor(norms[k], phase.clip);
      report.numbers.clipped = clip < 1;
      const double inside_damping = phase.damping.outside ? 1.0 : delta;
      const bool inside = deltas.round_to(grid, k, clip * tasks[k].weight * inside_damping);
      report.outcome = inside ? Outcome::delta : Outcome::outside_grid;
    }
    reports.push_back(std::move(report));
  }

  const std::size_t elements = global_.size() * (global_.isotropic() ? 1 : 2) + global_.isotropic();
  Tally answers = tally(reports, tasks.size(), elements, grid.bits);
  const DeviceMessage total = deltas.total(grid);
  const double scale = optimizer_scale(phase, round, delta);
  std::optional<DeviceMessage> next;
  double renormalised = 1;
  if (answers.numbers.answered > 0) {
    renormalised = renormalisation(phase, answers);
    GuardOutcome outcome;
    next = stepped(phase, renormalised == 1 ? total : power(total, float(renormalised)), scale,
                   outcome);
    answers.numbers.improper_global = outcome.improper;
    answers.numbers.step_scale = outcome.scale;
    if (outcome.skipped) answers.taken.clear();  // as if nobody had answered
  }
  if (phase.stateful()) {
    std::vector<FactorMove> moves;
    std::vector<std::uint64_t> keys;
    for (std::size_t k = 0; k < asked.size() && !answers.taken.empty(); ++k) {
      if (reports[k].outcome != Outcome::delta) continue;
      moves.push_back({k, asked[k].site});
      keys.push_back(asked[k].info->key);
    }
    deltas.move_factors(grid, shape_, moves,
                        {.optimizer = phase.factor_optimizer,
                         .scale = scale,
                         .settle = answers.numbers.step_scale * renormalised});
    sites_->end(keys);
  }
  if (next) {
    global_ = std::move(*next);
    point_.reset();
  }
  const std::vector<MessageFacts> facts = facts_of({&total, &global_});
  facts_ = facts[1];
  state.grid =
      next_grid_state(state.grid, facts[0].largest, answers.numbers.too_large(), phase.grid_bits);
  round_ = ++state.round;
  return answers.numbers;
}

}  // namespace fedep
