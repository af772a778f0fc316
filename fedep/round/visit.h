// Clients' part of a round, the same wherever it is played (Guo+23 Alg. 4): cavity, local inference,
// delta; then clip, damp, round to the grid, and move the own factor by exactly what is sent. Written
// once, for the rows of a cohort (rows.h).
#pragma once

#include <exception>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "fedep/algorithm/delta.h"
#include "fedep/optim/clip.h"
#include "fedep/optim/guard.h"
#include "fedep/round/round_parts.h"
#include "fedep/round/rows.h"

namespace fedep {

// Before inference: a client's guarded cavity.
template <Storage V>
struct PreparedVisitOf {
  Gaussian<V> cavity;
  VisitNumbers numbers;
  bool skipped = false;  // by the guard: no inference, no delta
  // What the tilted distribution is divided by: q; or, if the guard changed the cavity, that cavity
  // times what was to be taken out of q. The client then still replaces just its own part.
  std::optional<Gaussian<V>> divisor;
};

// Whether a and b have the same elements; other storages bring their own.
inline bool same(const Message& a, const Message& b) { return a == b; }

// Adds round, client and stage to an error on its way up, and keeps its kind.
[[noreturn]] void rethrow_from_visit(std::int64_t round, std::span<const AskedClient> asked,
                                     const char* stage);

template <Storage V>
void guard_cavity(const RoundTaskOf<V>& round, PreparedVisitOf<V>& visit) {
  const Gaussian<V> wanted = visit.cavity;
  visit.skipped = guard(round.phase.guard, round.global, visit.cavity).skipped;
  if (!same(visit.cavity, wanted)) {
    visit.divisor = product(visit.cavity, quotient(round.global, wanted));
  }
}

template <Storage V>
std::vector<PreparedVisitOf<V>> prepare_visits(const RoundTaskOf<V>& round,
                                               std::span<const AskedClient> asked, Rows<V>& rows) {
  const Phase& phase = round.phase;
  std::vector<Gaussian<V>> cavities = rows.form_cavities();
  // A flat cavity is meant to be improper; a point estimate has no precision.
  const bool checked = !phase.algorithm->point_estimate && phase.cavity != CavityKind::flat;
  const std::vector<CavityFacts> facts =
      checked ? rows.examine(cavities) : std::vector<CavityFacts>(asked.size());
  std::optional<bool> can_guard;  // nothing can be done about cavities while q itself is improper
  std::vector<PreparedVisitOf<V>> visits;
  for (std::size_t r = 0; r < asked.size(); ++r) {
    PreparedVisitOf<V> visit{
        .cavity = std::move(cavities[r]), .numbers = {}, .skipped = false, .divisor = {}};
    visit.numbers.examples = asked[r].info->examples;
    visit.numbers.improper_cavity = facts[r].improper;
    if (!facts[r].in_order && phase.guard.mode != GuardMode::count) {
      if (!can_guard) can_guard = is_proper(round.global);
      if (*can_guard) guard_cavity(round, visit);
    }
    visits.push_back(std::move(visit));
  }
  return visits;
}

// One run per client asked; those skipped have an empty one.
template <Storage V>
std::vector<ClientRunOf<V>> infer_visits(const RoundTaskOf<V>& round,
                                         std::span<const AskedClient> asked,
                                         std::vector<PreparedVisitOf<V>>& prepared, Rows<V>& rows) {
  using Scalar = typename V::Scalar;
  const double p = round.phase.likelihood_power();
  std::vector<VisitOf<V>> visits;
  std::vector<std::size_t> places;
  std::vector<VisitNumbers> numbers;
  for (std::size_t r = 0; r < asked.size(); ++r) {
    if (prepared[r].skipped) continue;
    visits.push_back({round, *asked[r].info, std::move(prepared[r].cavity)});
    // Cavity times likelihood^p is (cavity^(1/p) times likelihood)^p, which every method can infer.
    if (p != 1) visits.back().cavity = power(visits.back().cavity, Scalar(1 / p));
    places.push_back(r);
    numbers.push_back(prepared[r].numbers);
  }
  std::vector<ClientRunOf<V>> runs(asked.size());
  if (visits.empty()) return runs;
  std::vector<ClientRunOf<V>> inferred = rows.infer(std::move(visits), places, numbers);
  check_same_size("local inference", "number of runs", places.size(), inferred.size());
  for (std::size_t i = 0; i < places.size(); ++i) {
    prepared[places[i]].numbers = numbers[i];
    runs[places[i]] = std::move(inferred[i]);
    if (p != 1) runs[places[i]].tilted = power(runs[places[i]].tilted, Scalar(p));
  }
  return runs;
}

// Reports without their deltas, which are in `rows`.
template <Storage V>
std::vector<Report> finish_visits(const RoundTaskOf<V>& round, std::span<const AskedClient> asked,
                                  std::vector<PreparedVisitOf<V>> prepared,
                                  std::vector<ClientRunOf<V>> runs, Rows<V>& rows) {
  const Phase& phase = round.phase;
  for (std::size_t r = 0; r < asked.size(); ++r) {
    // Without data there is nothing to say, whatever a method would make of it.
    if (prepared[r].skipped || asked[r].info->examples == 0) {
      rows.add_flat();
    } else {
      const std::vector<Range> silent = std::move(runs[r].silent);
      const std::optional<SilentLaw> law = runs[r].silent_law;
      add_delta(*phase.algorithm, std::move(runs[r]), std::move(prepared[r].divisor), round.mean,
                phase.delta, rows);
      if (!silent.empty() || law) rows.silence(silent, law);
    }
  }
  const std::vector<double> norms = rows.measure();
  const double damping = phase.damping.outside ? 1.0 : round.damping;
  std::vector<Report> reports;
  for (std::size_t r = 0; r < asked.size(); ++r) {
    Report report{.client = asked[r].task.client,
                  .outcome = Outcome::skipped,
                  .delta = {},
                  .weight = asked[r].task.weight,
                  .numbers = prepared[r].numbers,
                  .error = {}};
    if (!prepared[r].skipped) {
      report.numbers.delta_norm = norms[r];
      const double clip = clip_factor(norms[r], phase.clip);
      report.numbers.clipped = clip < 1;
      const double scale = clip * asked[r].task.weight * damping;
      const bool inside = rows.round_to_grid(r, scale);
      report.numbers.rounded_away =
          phase.clip > 0 && is_too_coarse(round.grid, scale * norms[r], numbers_of(round.global));
      report.outcome = inside ? Outcome::delta : Outcome::outside_grid;
      if (inside && phase.stateful()) rows.propose(r);
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

// All of it. What was sent is in `rows`; the reports say of which rows.
template <Storage V>
std::vector<Report> play_visits(const RoundTaskOf<V>& round, std::span<const AskedClient> asked,
                                Rows<V>& rows) {
  const char* stage = "preparing its cavity";
  try {
    rows.begin(round, asked);
    std::vector<PreparedVisitOf<V>> prepared = prepare_visits(round, asked, rows);
    stage = "local inference";
    std::vector<ClientRunOf<V>> runs = infer_visits(round, asked, prepared, rows);
    stage = "making its delta";
    return finish_visits(round, asked, std::move(prepared), std::move(runs), rows);
  } catch (const std::exception&) {
    rethrow_from_visit(round.round, asked, stage);
  }
}

}  // namespace fedep
