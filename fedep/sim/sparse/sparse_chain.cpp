#include "fedep/sim/sparse/sparse_chain.h"

#include "fedep/message/check.h"
#include "fedep/sim/sparse/row_steps.h"
#include "fedep/sim/sparse/step_maps.h"
#include "fedep/sim/sparse/step_plan.h"
#include "fedep/sim/sparse/untouched_rows.h"

namespace fedep {
namespace {

SgdNumbers sgd_numbers(const ChainInput& input) {
  const OptimizerSettings& optimizer = input.settings.client.optimizer;
  const double n = double(input.visit.client.examples);
  return {.lr = rate_of_step(input.settings, 0, 1),
          .momentum = float(optimizer.momentum),
          .per_example = n > 0 ? float(1 / n) : 0.0f};
}

RowsStart rows_start(const ChainInput& input) {
  const Message& cavity = input.visit.cavity;
  return {.theta = input.visit.round.mean.span().data(),
          .eta = cavity.eta().span().data(),
          .lambda = cavity.isotropic() ? nullptr : cavity.lambda_span().data(),
          .decay = float(input.settings.client.weight_decay * double(input.visit.client.examples))};
}

void check_below(const char* function, const char* what, const std::vector<std::uint32_t>& columns,
                 std::size_t end) {
  for (const std::uint32_t column : columns) {
    if (column >= end) {
      fail(function, what, fmt::format("in [0, {})", end), fmt::format("{}", column));
    }
  }
}

class SparseChain final : public Chain {
 public:
  SparseChain(SparseLinear& model, const ChainInput& input)
      : model_(model),
        data_(input.data),
        client_(input.client),
        visit_(input.visit),
        settings_(input.settings),
        width_(model.outputs()),
        isotropic_(input.visit.cavity.isotropic()),
        numbers_(sgd_numbers(input)),
        start_(rows_start(input)),
        lambda_(isotropic_ ? visit_.cavity.lambda_scalar() + start_.decay : 0.0f),
        maps_(numbers_, lambda_),
        kept_(model.size() / width_ - 1),
        rows_(model,
              {.lambda = !isotropic_,
               .sum = settings_.averages,
               .mean = true,
               .squares = settings_.keeps_variance},
              start_, settings_.client.loss_times_batch) {}

  void run_epoch(int epoch) override {
    const std::size_t copies = settings_.pooled ? std::size_t(settings_.client.epochs) : 1;
    const Minibatches batches(visit_address(visit_, Purpose::shuffle, std::size_t(epoch)),
                              visit_.client.examples, copies, std::size_t(settings_.client.batch),
                              settings_.client.remainder);
    epoch_steps_ = batches.size();
    if (settings_.averages) events_.push_back({steps_, 0, 0});
    for (std::size_t i = 0; i < batches.size(); ++i) {
      const Address augmentation = visit_address(visit_, Purpose::augment, steps_);
      Batch& batch = plans_.next_batch();
      data_.train_batch(client_, batches[i], settings_.augment ? &augmentation : nullptr, batch);
      check_batch(batch);
      plans_.add(kept_, events_.size());
      ++steps_;
    }
    if (isotropic_) maps_.reach(steps_);
  }

  HostVector<float> iterate() const override { return collect(RowPart::theta); }
  HostVector<float> epoch_average() const override {
    return epoch_steps_ == 0 ? iterate() : collect(RowPart::sum, epoch_steps_);
  }
  void accumulate_moments() override {
    events_.push_back({steps_, ++samples_, settings_.averages ? epoch_steps_ : 0});
  }
  HostVector<float> mean() const override {
    return samples_ == 0 ? iterate() : collect(RowPart::mean);
  }
  HostVector<float> variance() const override {
    if (samples_ < 2 || !settings_.keeps_variance) {
      fail("chain", "samples with second moments", "at least 2", fmt::format("{}", samples_));
    }
    return collect(RowPart::squares, std::size_t(samples_ - 1));
  }
  std::optional<FreeMean> free_mean() const override {
    if (!isotropic_) return std::nullopt;
    const RowPart part = samples_ == 0 ? RowPart::theta : RowPart::mean;
    const double c = untouched_coefficient(law(), maps_.exact(), {part, steps_, 1});
    return FreeMean{.by_start = 1 - c * double(lambda_), .by_eta = c};
  }
  std::size_t steps() const override { return steps_; }
  double loss_sum() const override {
    run_planned();
    return rows_.loss_sum();
  }

 private:
  void check_batch(const Batch& batch) const {
    check_same_size("linear", "sparse features", batch.size, batch.sparse.rows());
    check_below("linear", "a feature", batch.sparse.columns, kept_.features());
    if (model_.target() != TargetKind::tags) return;
    check_same_size("loss_delta", "tags", batch.size, batch.tags.rows());
    check_below("loss_delta", "a tag", batch.tags.columns, width_);
  }

  RowLaw law() const {
    return {.numbers = numbers_,
            .isotropic = isotropic_,
            .lambda = lambda_,
            .maps = maps_.without_gradient(),
            .gradient_maps = maps_.after_gradient(),
            .events = events_,
            .first_step = steps_ - plans_.steps().size()};
  }

  // Steps are planned when they are asked for, and run when somebody wants to know their outcome.
  void run_planned() const {
    plans_.finish();
    rows_.make(law(), kept_, plans_.steps());
    plans_.clear();
  }

  // A part of all rows, divided by a count.
  HostVector<float> collect(RowPart part, std::size_t divisor = 1) const {
    run_planned();
    const RowLaw law = this->law();
    const RowQuery query{part, steps_, divisor};
    const UntouchedRows untouched(law, maps_.exact(), start_, query);
    HostVector<float> out(model_.size());
    const auto part_of = [&](std::size_t row, std::size_t rows) {
      return out.span().subspan(row * width_, rows * width_);
    };
    for (std::size_t row = 0; row <= kept_.features();) {
      std::size_t end = row;  // of rows that were never touched, from this one on
      while (end < kept_.features() && !kept_.keeps(end)) ++end;
      if (end > row) {
        untouched.read(row * width_, part_of(row, end - row));
        row = end;
      } else {
        rows_.read(kept_.slot(row), query, law, part_of(row, 1));
        ++row;
      }
    }
    return out;
  }

  SparseLinear& model_;
  const Dataset& data_;
  std::size_t client_;
  const Visit& visit_;
  const ChainSettings& settings_;
  std::size_t width_;  // numbers in a row
  bool isotropic_;     // Λ_p is one number, lambda_
  SgdNumbers numbers_;
  RowsStart start_;
  float lambda_;
  StepMaps maps_;  // isotropic only
  KeptRows kept_;
  std::vector<ChainEvent> events_;
  // What run_planned() changes.
  mutable StepPlans plans_;
  mutable RowSteps rows_;
  int samples_ = 0;
  std::size_t steps_ = 0, epoch_steps_ = 0;
};

}  // namespace

std::unique_ptr<Chain> make_sparse_chain(SparseLinear& model, const ChainInput& input) {
  return std::make_unique<SparseChain>(model, input);
}

}  // namespace fedep
