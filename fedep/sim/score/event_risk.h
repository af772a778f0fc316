// Whether spells end with the event (data/table/person_time.h), as a model of yes and no over a model of counts: of a row that is
// free of the event where its spell begins,
//
//   P(event by the spell's end) = 1 - exp(-Σ_j μ_j),    μ_j the mean count of its j-th piece: hazard times time.
//
//   const std::unique_ptr<Model> risk = event_risk(std::move(counts));
//   Predictive(*risk, state).point(batch_of_spells(encoded, 0, 500));
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "fedep/data/batch.h"
#include "fedep/model/model.h"

namespace fedep {

// Takes batches of spells, whose outputs are logits; it predicts, and cannot be trained.
std::unique_ptr<Model> event_risk(std::unique_ptr<Model> counts);

// Spells [begin, end) of those whose pieces follow one another in `pieces`: spell i has [offsets[i], offsets[i + 1]).
// The batch's `size` is the number of spells, its `dense` and `log_exposure` are those of pieces, and its
// `sparse.offsets` says whose they are.
Batch batch_of_spells(const Batch& pieces, std::span<const std::size_t> offsets, std::size_t begin,
                      std::size_t end);

}  // namespace fedep
