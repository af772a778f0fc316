#include "fedep/sim/gpu/cuda_rows.h"

#include <algorithm>
#include <utility>

#include "fedep/algorithm/cavity.h"
#include "fedep/cuda/device/vector_kernels.h"
#include "fedep/cuda/round/device_state.h"
#include "fedep/cuda/round/round_kernels.h"
#include "fedep/cuda/round/sample_moves.h"  // posterior_delta() finds it
#include "fedep/message/check.h"
#include "fedep/round/factor_clock.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/visit.h"

namespace fedep {
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

void CudaRows::begin(const DeviceRound& round, std::span<const AskedClient> asked) {
  round_ = &round;
  asked_ = asked;
  factors_.clear();
  missed_.clear();
  proposed_.clear();
  deltas_.emplace(round.global, round.mean);
  if (!round.phase.stateful()) return;
  if (sites_ == nullptr) throw InputError("visit: a stateful phase needs a site store");
  find_factors();
  fetch_next_rounds_factors();
}

void CudaRows::find_factors() {
  const OptimizerSettings& optimizer = round_->phase.factor_optimizer;
  check_optimizer(optimizer);
  shape_ = {.size = round_->global.size(),
            .family = round_->global.family(),
            .slots = find_optimizer(optimizer.name).slots(optimizer).size()};
  sites_->begin(shape_, round_->round);
  for (const AskedClient& client : asked_) {
    DeviceSite* site = sites_->find(client.info->key);
    if (site == nullptr) {
      site = &sites_->add(client.info->key);
      fill_unvisited(shape_, optimizer, round_->unvisited.per_example, float(client.info->examples),
                     *site);
    }
    factors_.push_back(site);
    missed_.push_back(round_->phase.follows_rounds()
                          ? missed_steps(optimizer, round_->step_scales, site->steps)
                          : MissedSteps{});
  }
}

void CudaRows::fetch_next_rounds_factors() {
  const Phase& phase = round_->phase;
  const std::int64_t next = round_->round + 1;
  if (next >= phase.end_round()) return;
  std::vector<std::uint64_t> keys;
  for (const std::size_t client :
       sample_clients(round_->seed, next, population_.size(), phase.clients_per_round)) {
    keys.push_back(population_[client].key);
  }
  sites_->prefetch(keys);
}

// cavity.h's formulas, for all clients at once; of `share`, q/q_0 is made once. An own factor counts
// 1/ρ (Phase::penalty).
std::vector<DeviceMessage> CudaRows::without_factors() const {
  const DeviceMessage& q = round_->global;
  const bool own = round_->phase.stateful(), diagonal = !q.isotropic();
  const bool clocked = round_->phase.follows_rounds();
  const DeviceMessage all_factors = own ? DeviceMessage() : quotient(q, round_->prior);
  if (!own && all_factors.family() != q.family()) fail("cavity", "q_0", "of q's family", "not");
  std::vector<gpu::RemovalRow> rows;
  std::vector<DeviceMessage> cavities;
  for (std::size_t r = 0; r < asked_.size(); ++r) {
    if (!own) check_in("average_factor", "share", asked_[r].task.share, 0, 1);
    const float share = float(own ? 1 / round_->phase.penalty : asked_[r].task.share);
    DeviceSite* const site = own ? factors_[r] : nullptr;
    const MissedSteps missed = own ? missed_[r] : MissedSteps{};
    const auto remove = [&](const DeviceVector& whole, const float* part, const float* momentum) {
      DeviceVector left(q.size());
      rows.push_back({whole.data(), part, share, left.data(), momentum, missed});
      return left;
    };
    DeviceVector eta = remove(q.eta(), own ? site->eta(shape_, 0) : all_factors.eta().data(),
                              clocked ? site->eta(shape_, 1) : nullptr);
    if (diagonal) {
      DeviceVector lambda = remove(
          q.lambda_vector(), own ? site->lambda(shape_, 0) : all_factors.lambda_vector().data(),
          clocked ? site->lambda(shape_, 1) : nullptr);
      cavities.emplace_back(std::move(eta), std::move(lambda));
    } else {
      const float factor = clocked ? caught_up(missed, site->numbers[0], site->numbers[1])
                           : own   ? site->numbers[0]
                                   : all_factors.lambda_scalar();
      cavities.emplace_back(std::move(eta), q.lambda_scalar() - share * factor);
    }
  }
  const DeviceArray<gpu::RemovalRow> there(rows);
  gpu::remove_factors(there.data(), rows.size(), q.size(), device_stream());
  return cavities;
}

// Around q's mean, of point estimates; in `dual` less what the client remembers, its factor's eta.
std::vector<DeviceMessage> CudaRows::proximal_cavities() const {
  std::vector<DeviceVector> centers(asked_.size(), round_->mean);
  if (round_->phase.cavity == CavityKind::dual) {
    std::vector<gpu::RemovalRow> rows;
    for (std::size_t r = 0; r < asked_.size(); ++r) {
      float* const center = centers[r].data();
      rows.push_back({.whole = center, .part = factors_[r]->eta(shape_, 0), .left = center});
    }
    const DeviceArray<gpu::RemovalRow> there(rows);
    gpu::remove_factors(there.data(), rows.size(), round_->mean.size(), device_stream());
  }
  std::vector<DeviceMessage> cavities;
  for (std::size_t r = 0; r < asked_.size(); ++r) {
    cavities.push_back(
        proximal_cavity(centers[r], round_->phase.mu, double(asked_[r].info->examples)));
  }
  return cavities;
}

std::vector<DeviceMessage> CudaRows::form_cavities() {
  const Phase& phase = round_->phase;
  if (phase.cavity == CavityKind::own_factor || phase.cavity == CavityKind::share) {
    return without_factors();
  }
  if (phase.cavity == CavityKind::proximal || phase.cavity == CavityKind::dual) {
    return proximal_cavities();
  }
  std::vector<DeviceMessage> cavities(asked_.size());
  // A chain that is told nothing but where to start needs no vectors for that.
  if (phase.cavity == CavityKind::flat && phase.algorithm->point_estimate) return cavities;
  for (std::size_t r = 0; r < asked_.size(); ++r) {
    cavities[r] =
        cavity(phase.cavity, round_->global, round_->prior, round_->global, asked_[r].task.share);
  }
  return cavities;
}

std::vector<CavityFacts> CudaRows::examine(const std::vector<DeviceMessage>& cavities) {
  std::vector<const DeviceMessage*> all;
  for (const DeviceMessage& cavity : cavities) all.push_back(&cavity);
  const bool always_guards = round_->phase.guard.mode == GuardMode::floor;
  std::vector<CavityFacts> facts;
  for (const std::size_t improper : count_improper(round_->global, all)) {
    facts.push_back({.improper = improper, .in_order = improper == 0 && !always_guards});
  }
  return facts;
}

std::vector<DeviceRun> CudaRows::infer(std::vector<VisitOf<DeviceVector>> visits,
                                       std::span<const std::size_t> rows,
                                       std::vector<VisitNumbers>& numbers) {
  std::vector<CohortVisit> cohort;
  for (std::size_t i = 0; i < visits.size(); ++i) {
    cohort.push_back({visits[i].client, asked_[rows[i]].task.client, std::move(visits[i].cavity)});
  }
  return inference_.infer(round_->seed, round_->round, round_->phase, round_->mean,
                          std::move(cohort), numbers);
}

void CudaRows::settle(std::span<const std::size_t> taken, const StepPart& part) {
  std::vector<FactorMove> moves;
  std::vector<std::uint64_t> keys;
  for (const std::size_t row : proposed_) {
    if (!std::ranges::binary_search(taken, asked_[row].task.client)) continue;
    moves.push_back({row, factors_[row], missed_[row]});
    keys.push_back(asked_[row].info->key);
  }
  const Phase& phase = round_->phase;
  const double scale = optimizer_scale(phase, round_->round, round_->damping);
  FactorStep step{.optimizer = phase.factor_optimizer, .scale = scale, .settle = part.all()};
  if (phase.follows_rounds()) {
    step.clocked = clocked_step(phase, scale, part);
    step.server_steps = std::int64_t(round_->step_scales.size()) + 1;
  }
  deltas_->move_factors(round_->grid, shape_, moves, step);
  sites_->end(keys);
}

AnswersOf<DeviceVector> CudaExecutor::play(const DeviceRound& round,
                                           std::span<const ClientTask> clients) {
  asked_.clear();
  for (const ClientTask& task : clients) asked_.push_back({task, &population_[task.client]});
  std::vector<Report> reports = play_visits<DeviceVector>(round, asked_, rows_);
  return {.total = rows_.total(), .reports = std::move(reports)};
}

void CudaExecutor::settle(const DeviceRound& round, std::span<const std::size_t> taken,
                          const StepPart& part) {
  if (round.phase.stateful()) rows_.settle(taken, part);
}

}  // namespace fedep
