// The rows of W that a sparse chain keeps, cut into stripes of columns. A stripe of all rows that a
// client touches fits into a core's cache, and tags have nothing to do with one another: so a chain
// goes through all its steps stripe by stripe, and memory is read once a visit, not once a step.
// Within a stripe, row after row, a record has theta, momentum, eta and what else is kept, kStripe
// numbers each.
//
//   RowStore store(500, {.lambda = false, .sum = false, .mean = true, .squares = false});
//   store.resize(rows.size());
//   store.begin(stripe, rows, 0, start);            // records from slot 0 on
//   store.logits(stripe, plans[i], z);              // z [examples, kStripe]
//   store.descend(stripe, law, scale, plans, i, delta);
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "fedep/sim/chain/free_steps.h"
#include "fedep/sim/sparse/step_maps.h"
#include "fedep/sim/sparse/step_plan.h"

namespace fedep {

constexpr std::size_t kStripe = 16;  // columns: one vector of the widest units

// What befalls every row at the end of some step; a row that waits catches up on it later.
struct ChainEvent {
  std::size_t step;         // after so many steps
  int sample;               // the sample's number, from 1; 0: an epoch begins
  std::size_t epoch_steps;  // of the epoch that the sample ends; 0: the sample is no average
};

// What a row has seen of steps and events.
struct RowClock {
  std::size_t step = 0;
  std::size_t event = 0;
};

// How rows move, the same for all of them.
struct RowLaw {
  SgdNumbers numbers;
  bool isotropic;  // Λ is `lambda`, and k steps without gradient are maps[k]
  float lambda;
  std::span<const RowMap> maps;  // of StepMaps; isotropic only
  std::span<const GradientMap> gradient_maps;
  std::span<const ChainEvent> events;
  std::size_t first_step;  // of the planned ones
};

struct KeptParts {
  bool lambda;  // where it differs between coordinates
  bool sum;     // of the epoch's iterates
  bool mean;    // running moments of the samples
  bool squares;
};

// Where all rows begin, [W, then the bias]; lambda may be null.
struct RowsStart {
  const float* theta;
  const float* eta;
  const float* lambda;
  float decay;  // is added to lambda
};

enum class RowPart { theta, sum, mean, squares };

// What is asked of a row: a part of it after so many steps, divided by a count.
struct RowQuery {
  RowPart part;
  std::size_t step;
  std::size_t divisor = 1;
};

// Where the kept parts of a record begin; 0: not kept.
struct RecordOffsets {
  std::size_t lambda, sum, mean, squares;
  std::size_t size;
};

class RowStore {
 public:
  RowStore(std::size_t width, const KeptParts& parts);

  std::size_t stripes() const { return stripes_; }
  // Columns of a stripe that exist; those beyond are zero in every record.
  std::size_t columns(std::size_t stripe) const;

  // Records of new slots are not set.
  void resize(std::size_t slots);
  // Sets theta, eta and lambda of the slots from `first` on, and their momentum to zero.
  void begin(std::size_t stripe, const KeptRows& rows, std::size_t first, const RowsStart& start);

  // Brings the rows that plans[i] touches first up to its step.
  void catch_up(std::size_t stripe, const RowLaw& law, std::span<const RowClock> clocks,
                std::span<const StepPlan> plans, std::size_t i);
  // z = bias + x W
  void logits(std::size_t stripe, const StepPlan& plan, float* z) const;
  // A step down the gradient scale xᵀ delta plus the prior's, and on to the row's next touch.
  void descend(std::size_t stripe, const RowLaw& law, float scale, std::span<const StepPlan> plans,
               std::size_t i, const float* delta);

  // What is asked of a row, which stays as it is.
  void read(std::size_t slot, const RowQuery& query, const RowLaw& law, const RowClock& clock,
            std::span<float> to) const;

 private:
  static RecordOffsets offsets_of(const KeptParts& parts);
  float* record(std::size_t stripe, std::size_t slot) const {
    return first_ + (stripe * capacity_ + slot) * offsets_.size;
  }

  std::size_t width_, stripes_;
  RecordOffsets offsets_;
  std::size_t slots_ = 0, capacity_ = 0;
  std::unique_ptr<float[]> memory_;
  float* first_ = nullptr;  // aligned as the cache is
};

}  // namespace fedep
