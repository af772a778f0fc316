// The steps of a sparse chain on the rows of W that it keeps, planned before (step_plan.h) and made
// together. Tags have nothing to do with one another, so a stripe of their columns goes through all
// steps by itself (row_store.h); other losses need all of an example's outputs in every step.
//
//   RowSteps steps(model, parts, start, false);
//   steps.make(law, rows, plans.steps());               // plans are finished; rows may be new
//   steps.read(rows.slot(word), {RowPart::theta, 40}, law, to);
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "fedep/model/linear.h"
#include "fedep/sim/sparse/row_store.h"

namespace fedep {

class RowSteps {
 public:
  // `loss_times_batch`: a step goes down the gradient of the batch's summed loss, not of its mean.
  RowSteps(const SparseLinear& model, const KeptParts& parts, const RowsStart& start,
           bool loss_times_batch);

  // Rows that are new begin at step 0, before all events.
  void make(const RowLaw& law, const KeptRows& rows, std::span<const StepPlan> plans);
  // Of the batches' mean losses.
  double loss_sum() const { return loss_sum_; }

  // What is asked of a row that has begun, which stays as it is.
  void read(std::size_t slot, const RowQuery& query, const RowLaw& law, std::span<float> to) const {
    store_.read(slot, query, law, clocks_[slot], to);
  }

 private:
  // `begun`: slots before this one began in an earlier call.
  void make_stripe_by_stripe(const RowLaw& law, const KeptRows& rows, std::size_t begun,
                             std::span<const StepPlan> plans);
  void make_step_by_step(const RowLaw& law, const KeptRows& rows, std::size_t begun,
                         std::span<const StepPlan> plans);
  double tags_delta(std::size_t stripe, const Batch& batch);
  float gradient_scale(const Batch& batch) const;

  Likelihood likelihood_;
  std::size_t width_;  // numbers in a row
  RowsStart start_;
  bool loss_times_batch_;
  RowStore store_;
  std::vector<RowClock> clocks_;  // of slots that have begun
  std::vector<float> logits_, targets_, outputs_;
  double loss_sum_ = 0;
};

}  // namespace fedep
