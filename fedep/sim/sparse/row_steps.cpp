#include "fedep/sim/sparse/row_steps.h"

#include <algorithm>

#include "fedep/model/layer/loss.h"

namespace fedep {

RowSteps::RowSteps(const SparseLinear& model, const KeptParts& parts, const RowsStart& start,
                   bool loss_times_batch)
    : likelihood_(model.likelihood()),
      width_(model.outputs()),
      start_(start),
      loss_times_batch_(loss_times_batch),
      store_(width_, parts) {}

void RowSteps::make(const RowLaw& law, const KeptRows& rows, std::span<const StepPlan> plans) {
  const std::size_t begun = clocks_.size();
  clocks_.resize(rows.size());
  store_.resize(rows.size());
  if (likelihood_.target == TargetKind::tags) {
    make_stripe_by_stripe(law, rows, begun, plans);
  } else {
    make_step_by_step(law, rows, begun, plans);
  }
  // Rows are where their last touch has left them.
  for (std::size_t i = 0; i < plans.size(); ++i) {
    for (const TouchedRow& row : plans[i].rows) {
      clocks_[row.slot] = {.step = law.first_step + i + 1, .event = plans[i].events};
    }
  }
}

void RowSteps::make_stripe_by_stripe(const RowLaw& law, const KeptRows& rows, std::size_t begun,
                                     std::span<const StepPlan> plans) {
  std::vector<double> losses(plans.size(), 0.0);
  for (std::size_t stripe = 0; stripe < store_.stripes(); ++stripe) {
    store_.begin(stripe, rows, begun, start_);
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const StepPlan& plan = plans[i];
      logits_.resize(plan.batch.size * kStripe);
      store_.catch_up(stripe, law, clocks_, plans, i);
      store_.logits(stripe, plan, logits_.data());
      losses[i] += tags_delta(stripe, plan.batch);
      store_.descend(stripe, law, gradient_scale(plan.batch), plans, i, logits_.data());
    }
  }
  for (std::size_t i = 0; i < plans.size(); ++i) {
    loss_sum_ += losses[i] / double(width_) / double(plans[i].batch.size);
  }
}

// Logits of a stripe become derivatives; gives back the summed loss of its tags.
double RowSteps::tags_delta(std::size_t stripe, const Batch& batch) {
  const std::size_t first = stripe * kStripe, columns = store_.columns(stripe);
  targets_.assign(logits_.size(), 0.0f);
  for (std::size_t i = 0; i < batch.size; ++i) {
    for (std::size_t k = batch.tags.offsets[i]; k < batch.tags.offsets[i + 1]; ++k) {
      const std::size_t tag = batch.tags.columns[k] - first;  // a very large one if it is below
      if (tag >= columns) continue;
      targets_[i * kStripe + tag] = batch.tags.values.empty() ? 1.0f : batch.tags.values[k];
    }
    if (columns == kStripe) continue;
    const auto row = logits_.begin() + std::ptrdiff_t(i * kStripe);
    std::fill(row + std::ptrdiff_t(columns), row + kStripe, -1e30f);  // which have no loss
  }
  const float per_example = float(1.0 / double(batch.size));
  return logistic_delta(logits_, targets_, per_example / float(width_));
}

void RowSteps::make_step_by_step(const RowLaw& law, const KeptRows& rows, std::size_t begun,
                                 std::span<const StepPlan> plans) {
  const auto each_stripe = [&](auto act) {
    for (std::size_t stripe = 0; stripe < store_.stripes(); ++stripe) act(stripe);
  };
  each_stripe([&](std::size_t stripe) { store_.begin(stripe, rows, begun, start_); });
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const StepPlan& plan = plans[i];
    const std::size_t examples = plan.batch.size, apart = examples * kStripe;
    logits_.resize(store_.stripes() * apart);
    outputs_.resize(examples * width_);
    const auto each_part = [&](std::size_t stripe, auto copy) {
      for (std::size_t k = 0; k < examples; ++k) {
        copy(logits_.data() + stripe * apart + k * kStripe,
             outputs_.data() + k * width_ + stripe * kStripe, store_.columns(stripe));
      }
    };
    each_stripe([&](std::size_t stripe) {
      store_.catch_up(stripe, law, clocks_, plans, i);
      store_.logits(stripe, plan, logits_.data() + stripe * apart);
      each_part(stripe, [](const float* in_stripe, float* in_row, std::size_t count) {
        std::copy_n(in_stripe, count, in_row);
      });
    });
    loss_sum_ +=
        loss_delta(likelihood_, plan.batch, outputs_, width_, Scale::batch_mean, {}, outputs_);
    each_stripe([&](std::size_t stripe) {
      each_part(stripe, [](float* in_stripe, const float* in_row, std::size_t count) {
        std::fill(std::copy_n(in_row, count, in_stripe), in_stripe + kStripe, 0.0f);
      });
      store_.descend(stripe, law, gradient_scale(plan.batch), plans, i,
                     logits_.data() + stripe * apart);
    });
  }
}

float RowSteps::gradient_scale(const Batch& batch) const {
  return loss_times_batch_ ? float(batch.size) : 1.0f;
}

}  // namespace fedep
