// A client's part of a round, the same wherever it runs (Guo+23 Alg. 4): cavity, local inference,
// delta; then clip, damp, round to the grid, and move the own factor by exactly what is sent.
#pragma once

#include <optional>
#include <span>

#include "fedep/algorithm/client_run.h"
#include "fedep/round/population.h"
#include "fedep/round/site_store.h"
#include "fedep/round/task.h"

namespace fedep {

// Everything local inference is given.
struct Visit {
  const RoundTask& round;
  const ClientInfo& client;
  Message cavity;
};

// Local inference: what a simulator or a deployed client brings, with the client's data behind it.
// Must fill what visit.round.phase.algorithm->needs names.
class LocalInference {
 public:
  virtual ~LocalInference() = default;
  virtual ClientRun infer(const Visit& visit, VisitNumbers& numbers) = 0;
};

// Before inference: the client's factor and its guarded cavity.
struct PreparedVisit {
  Visit visit;
  std::optional<SiteState> site;  // of a stateful phase
  VisitNumbers numbers;
  bool skipped = false;  // by the guard: no inference, no delta
  // What the tilted distribution is divided by: q; or, if the guard changed the cavity, that cavity
  // times what was to be taken out of q. The client then still replaces just its own part.
  std::optional<Message> divisor;
};

PreparedVisit prepare_visit(const RoundTask& round, const ClientTask& task,
                            const ClientInfo& client, const SiteStore* sites);

// After inference: the report; a stateful client's new state is proposed to `sites`.
Report finish_visit(PreparedVisit prepared, const ClientTask& task, const ClientRun& run,
                    SiteStore* sites);

// All three steps. `sites` may be null in stateless phases. An error gains the client's id and the
// stage.
Report play_visit(const RoundTask& round, const ClientTask& task, const ClientInfo& client,
                  SiteStore* sites, LocalInference& inference);

// Ends a round for stateful clients: the states that `taken` (indices in the population) proposed
// count from now on. scale < 1: the server kept only so much of its step, so factors keep as much
// of theirs.
void settle_visits(const RoundTask& round, const Population& population,
                   std::span<const std::size_t> taken, double scale, SiteStore& sites);

}  // namespace fedep
