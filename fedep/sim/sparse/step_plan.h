// Batches as a chain wants them that keeps touched rows of W only: words become numbers of kept rows
// (slots), and every step lists what it touches twice, by example for the logits and by row for the
// gradient. Slot 0 is the bias, which every example touches with value 1.
//
//   KeptRows rows(features);
//   StepPlans plans;
//   data.train_batch(client, examples, nullptr, plans.next_batch());
//   plans.add(rows, 0);                  // rows that are new get the next slots
//   plans.finish();
//   plans.steps()[0].rows[2].wait        // steps before the third row of step 0 is touched again
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "fedep/data/batch.h"

namespace fedep {

// Which rows of W are kept, and where.
class KeptRows {
 public:
  // `features` rows of W; the bias is row `features`.
  explicit KeptRows(std::size_t features)
      : slots_(features + 1, kNone), rows_{std::uint32_t(features)} {
    slots_[features] = 0;
  }

  std::size_t features() const { return slots_.size() - 1; }
  std::size_t size() const { return rows_.size(); }
  bool keeps(std::size_t row) const { return slots_[row] != kNone; }
  std::uint32_t slot(std::size_t row) const { return slots_[row]; }
  std::uint32_t row(std::size_t slot) const { return rows_[slot]; }

  // The row's slot, a new one if it has none.
  std::uint32_t keep(std::uint32_t row) {
    if (slots_[row] == kNone) {
      slots_[row] = std::uint32_t(rows_.size());
      rows_.push_back(row);
    }
    return slots_[row];
  }

 private:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();
  std::vector<std::uint32_t> slots_;  // of rows
  std::vector<std::uint32_t> rows_;   // of slots
};

struct WordUse {
  std::uint32_t at;  // slot in the list by example, example in the list by row
  float value;
};

struct TouchedRow {
  std::uint32_t slot;
  std::uint32_t uses;        // of it in this step
  std::uint32_t wait : 31;   // steps before the next one that touches it; 0 after the last
  std::uint32_t events : 1;  // there are some before that
};

struct StepPlan {
  Batch batch;
  std::size_t events = 0;           // that the chain has seen before this step
  std::vector<WordUse> by_example;  // [batch.sparse.offsets], ascending words
  std::vector<TouchedRow> rows;
  std::vector<WordUse> by_row;  // uses of rows[0], then of rows[1], …; ascending examples
  std::vector<std::uint32_t> first_use;  // slots that no step of the plan has touched before
};

class StepPlans {
 public:
  // Keeps its memory for the next steps.
  void clear();

  // The batch of the next step, to be filled and then added.
  Batch& next_batch();
  // `events`: that the chain has seen so far. Words are features, none twice in an example.
  void add(KeptRows& rows, std::size_t events);

  // Lists rows and their uses, when all steps are there. Rows that are treated alike come together,
  // by number of uses and by whether there are events before their next touch: processors guess well
  // what was the same before.
  void finish();

  std::span<const StepPlan> steps() const { return std::span(steps_).first(count_); }

 private:
  void list_rows(StepPlan& step, std::size_t number);

  std::vector<StepPlan> steps_;
  std::size_t count_ = 0;
  std::vector<std::uint32_t> uses_, next_;  // of slots: uses in a step, the step that comes next
  std::vector<TouchedRow> unsorted_;
};

}  // namespace fedep
