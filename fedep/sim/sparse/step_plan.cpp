#include "fedep/sim/sparse/step_plan.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace fedep {
namespace {

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kMostSteps = kNever >> 1;  // that TouchedRow::wait can hold
constexpr std::uint32_t kMostUses = 8;  // by which rows are told apart; more are all alike

}  // namespace

void StepPlans::clear() { count_ = 0; }

Batch& StepPlans::next_batch() {
  if (count_ == steps_.size()) steps_.emplace_back();
  return steps_[count_].batch;
}

void StepPlans::add(KeptRows& rows, std::size_t events) {
  StepPlan& step = steps_[count_];
  const SparseRows& words = step.batch.sparse;
  step.events = events;
  step.by_example.clear();
  for (std::size_t k = 0; k < words.columns.size(); ++k) {
    step.by_example.push_back(
        {rows.keep(words.columns[k]), words.values.empty() ? 1.0f : words.values[k]});
  }
  uses_.resize(rows.size(), 0);
  ++count_;
}

void StepPlans::finish() {
  next_.assign(uses_.size(), kNever);
  for (std::size_t i = count_; i-- > 0;) list_rows(steps_[i], i);
  // What comes next before all steps is where a slot was touched first.
  for (std::size_t i = 0; i < count_; ++i) {
    StepPlan& step = steps_[i];
    step.first_use.clear();
    for (const TouchedRow& row : step.rows) {
      if (next_[row.slot] == i) step.first_use.push_back(row.slot);
    }
  }
}

void StepPlans::list_rows(StepPlan& step, std::size_t number) {
  constexpr std::size_t kKinds = 2 * (kMostUses + 1);
  const auto kind = [](const TouchedRow& row) {
    return 2 * std::size_t(std::min(row.uses, kMostUses)) + row.events;
  };
  const std::size_t examples = step.batch.size;
  unsorted_.clear();
  const auto touch = [&](std::uint32_t slot, std::uint32_t uses) {
    const std::uint32_t next = next_[slot];
    unsorted_.push_back(
        {.slot = slot,
         .uses = uses,
         .wait = next == kNever ? 0 : (next - std::uint32_t(number) - 1) & kMostSteps,
         .events = next != kNever && steps_[next].events > step.events});
    next_[slot] = std::uint32_t(number);
  };
  for (const WordUse& use : step.by_example) ++uses_[use.at];
  for (const WordUse& use : step.by_example) {
    if (uses_[use.at] == 0) continue;
    touch(use.at, uses_[use.at]);
    uses_[use.at] = 0;
  }
  touch(0, std::uint32_t(examples));

  std::array<std::size_t, kKinds + 1> places{};
  for (const TouchedRow& row : unsorted_) ++places[kind(row) + 1];
  std::partial_sum(places.begin(), places.end(), places.begin());
  step.rows.resize(unsorted_.size());
  for (const TouchedRow& row : unsorted_) step.rows[places[kind(row)]++] = row;

  // uses_ says where a row's next use goes.
  std::uint32_t total = 0;
  for (const TouchedRow& row : step.rows) {
    uses_[row.slot] = total;
    total += row.uses;
  }
  step.by_row.resize(total);
  for (std::size_t i = 0; i < examples; ++i) {
    step.by_row[uses_[0]++] = {std::uint32_t(i), 1.0f};
    for (std::size_t k = step.batch.sparse.offsets[i]; k < step.batch.sparse.offsets[i + 1]; ++k) {
      const WordUse& use = step.by_example[k];
      step.by_row[uses_[use.at]++] = {std::uint32_t(i), use.value};
    }
  }
  for (const TouchedRow& row : step.rows) uses_[row.slot] = 0;
}

}  // namespace fedep
