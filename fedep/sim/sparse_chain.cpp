#include "fedep/sim/sparse_chain.h"

#include <algorithm>
#include <array>

#include "fedep/message/check.h"
#include "fedep/model/loss.h"
#include "fedep/model/vector_width.h"
#include "fedep/sim/free_steps.h"
#include "fedep/sim/row_store.h"
#include "fedep/sim/step_plan.h"

namespace fedep {
namespace {

enum class Wanted { iterate, average, mean, variance };

class SparseChain final : public Chain {
 public:
  SparseChain(SparseLinear& model, const ChainInput& input)
      : model_(model),
        data_(input.data),
        client_(input.client),
        visit_(input.visit),
        settings_(input.settings),
        width_(model.outputs()),
        features_(model.size() / width_ - 1),
        isotropic_(input.visit.cavity.isotropic()),
        kept_(features_),
        store_(width_, {.lambda = !isotropic_,
                        .sum = settings_.averages,
                        .mean = true,
                        .squares = settings_.keeps_variance}) {
    const double n = double(visit_.client.examples);
    numbers_ = {.lr = float(settings_.client.optimizer.lr),
                .momentum = float(settings_.client.optimizer.momentum),
                .per_example = n > 0 ? float(1 / n) : 0.0f};
    decay_ = float(settings_.client.weight_decay * n);
    if (isotropic_) lambda_ = visit_.cavity.lambda_scalar() + decay_;
  }

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
    if (!isotropic_) return;
    while (maps_.size() <= steps_) {
      maps_.push_back(next(maps_.back(), numbers_, double(lambda_)));
      row_maps_.emplace_back(maps_.back());
      const std::size_t k = gradient_maps_.size();
      gradient_maps_.push_back(with_gradient(maps_[k], maps_[k + 1], k, numbers_, double(lambda_)));
    }
  }

  HostVector<float> iterate() const override { return collect(Wanted::iterate); }
  HostVector<float> epoch_average() const override {
    return collect(epoch_steps_ == 0 ? Wanted::iterate : Wanted::average);
  }
  void accumulate_moments() override {
    events_.push_back({steps_, ++samples_, settings_.averages ? epoch_steps_ : 0});
  }
  HostVector<float> mean() const override {
    return collect(samples_ == 0 ? Wanted::iterate : Wanted::mean);
  }
  HostVector<float> variance() const override {
    if (samples_ < 2 || !settings_.keeps_variance) {
      fail("chain", "samples with second moments", "at least 2", fmt::format("{}", samples_));
    }
    return collect(Wanted::variance);
  }
  std::size_t steps() const override { return steps_; }
  double loss_sum() const override {
    run_planned();
    return loss_sum_;
  }

 private:
  RowLaw law() const {
    return {.numbers = numbers_,
            .isotropic = isotropic_,
            .lambda = lambda_,
            .maps = row_maps_,
            .gradient_maps = gradient_maps_,
            .events = events_,
            .first_step = steps_ - plans_.steps().size()};
  }

  // Steps are planned when they are asked for, and run when somebody wants to know their outcome.
  void run_planned() const {
    const std::span<const StepPlan> plans = plans_.steps();
    const std::size_t begun = clocks_.size();  // rows from there on are new
    if (plans.empty() && begun == kept_.size()) return;
    plans_.finish();
    const RowLaw law = this->law();
    clocks_.resize(kept_.size());
    store_.resize(kept_.size());
    if (model_.target() == TargetKind::tags) {
      run_stripe_by_stripe(law, plans, begun);
    } else {
      run_step_by_step(law, plans, begun);
    }
    // Rows are where their last touch has left them.
    for (std::size_t i = 0; i < plans.size(); ++i) {
      for (const TouchedRow& row : plans[i].rows) {
        clocks_[row.slot] = {.step = law.first_step + i + 1, .event = plans[i].events};
      }
    }
    plans_.clear();
  }

  // Rows that are new begin at step 0, before all events.
  void begin_stripe(std::size_t stripe, std::size_t begun) const {
    store_.begin(stripe, kept_, begun,
                 {.theta = visit_.round.mean.span().data(),
                  .eta = visit_.cavity.eta().span().data(),
                  .lambda = isotropic_ ? nullptr : visit_.cavity.lambda_span().data(),
                  .decay = decay_});
  }

  float gradient_scale(const StepPlan& plan) const {
    return settings_.client.loss_times_batch ? float(plan.batch.size) : 1.0f;
  }

  // Tags have nothing to do with one another, so their columns can be taken by themselves through
  // all steps.
  void run_stripe_by_stripe(const RowLaw& law, std::span<const StepPlan> plans,
                            std::size_t begun) const {
    std::vector<double> losses(plans.size(), 0.0);
    for (std::size_t stripe = 0; stripe < store_.stripes(); ++stripe) {
      begin_stripe(stripe, begun);
      for (std::size_t i = 0; i < plans.size(); ++i) {
        const StepPlan& plan = plans[i];
        logits_.resize(plan.batch.size * kStripe);
        store_.catch_up(stripe, law, clocks_, plans, i);
        store_.logits(stripe, plan, logits_.data());
        losses[i] += tags_delta(stripe, plan.batch);
        store_.descend(stripe, law, gradient_scale(plan), plans, i, logits_.data());
      }
    }
    for (std::size_t i = 0; i < plans.size(); ++i) {
      loss_sum_ += losses[i] / double(width_) / double(plans[i].batch.size);
    }
  }

  void check_batch(const Batch& batch) const {
    check_same_size("linear", "sparse features", batch.size, batch.sparse.rows());
    check_below("linear", "a feature", batch.sparse.columns, features_);
    if (model_.target() != TargetKind::tags) return;
    check_same_size("loss_delta", "tags", batch.size, batch.tags.rows());
    check_below("loss_delta", "a tag", batch.tags.columns, width_);
  }
  static void check_below(const char* function, const char* what,
                          const std::vector<std::uint32_t>& columns, std::size_t end) {
    for (const std::uint32_t column : columns) {
      if (column >= end) {
        fail(function, what, fmt::format("in [0, {})", end), fmt::format("{}", column));
      }
    }
  }

  // Logits of a stripe become derivatives; gives back the summed loss of its tags.
  double tags_delta(std::size_t stripe, const Batch& batch) const {
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

  // Other losses need all of an example's outputs at once.
  void run_step_by_step(const RowLaw& law, std::span<const StepPlan> plans,
                        std::size_t begun) const {
    const auto each_stripe = [&](auto act) {
      for (std::size_t stripe = 0; stripe < store_.stripes(); ++stripe) act(stripe);
    };
    each_stripe([&](std::size_t stripe) { begin_stripe(stripe, begun); });
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
      loss_sum_ += loss_delta(model_.target(), plan.batch, outputs_, width_, Scale::batch_mean, {},
                              outputs_);
      each_stripe([&](std::size_t stripe) {
        each_part(stripe, [](float* in_stripe, const float* in_row, std::size_t count) {
          std::fill(std::copy_n(in_row, count, in_stripe), in_stripe + kStripe, 0.0f);
        });
        store_.descend(stripe, law, gradient_scale(plan), plans, i,
                       logits_.data() + stripe * apart);
      });
    }
  }

  HostVector<float> collect(Wanted wanted) const {
    run_planned();
    HostVector<float> out(model_.size());
    const float coefficient = isotropic_ ? float(untouched_coefficient(wanted)) : 0.0f;
    const std::vector<FreeStretch> way = isotropic_ ? std::vector<FreeStretch>() : way_so_far();
    for (std::size_t r = 0; r <= features_;) {
      std::size_t end = r;  // of rows that were never touched, from this one on
      while (end < features_ && !kept_.keeps(end)) ++end;
      if (end > r) {
        const std::span<float> to = out.span().subspan(r * width_, (end - r) * width_);
        if (isotropic_) {
          write_untouched(wanted, coefficient, r, to);
        } else {
          write_untouched(wanted, way, r, to);
        }
        r = end;
      } else {
        write_kept(wanted, r, out.span().subspan(r * width_, width_));
        ++r;
      }
    }
    return out;
  }

  // The steps and events of a row that no batch has touched yet.
  std::vector<FreeStretch> way_so_far() const {
    std::vector<FreeStretch> way;
    std::size_t done = 0;
    for (const ChainEvent& event : events_) {
      way.push_back({.steps = event.step - done,
                     .sample = event.sample,
                     .averaged = float(event.epoch_steps),
                     .new_sum = event.sample == 0});
      done = event.step;
    }
    way.push_back({.steps = steps_ - done});
    return way;
  }

  // By one number for all rows that were never touched: θ = θ_0 - c r, variance = c r², with
  // r = λ θ_0 - η.
  double untouched_coefficient(Wanted wanted) const {
    const auto sample = [&](std::size_t step, std::size_t epoch_steps) {
      if (!settings_.averages || epoch_steps == 0) return maps_[step].by_r;
      return (maps_[step].sum_by_r - maps_[step - epoch_steps].sum_by_r) / double(epoch_steps);
    };
    if (wanted == Wanted::iterate) return maps_[steps_].by_r;
    if (wanted == Wanted::average) return sample(steps_, epoch_steps_);
    double mean = 0, squares = 0;
    for (const ChainEvent& event : events_) {
      if (event.sample == 0) continue;
      const double gap = sample(event.step, event.epoch_steps) - mean;
      mean += gap / event.sample;
      squares += gap * gap * (event.sample - 1) / event.sample;
    }
    return wanted == Wanted::mean ? mean : squares / (samples_ - 1);
  }

  void write_untouched(Wanted wanted, float coefficient, std::size_t r, std::span<float> to) const {
    const float* theta = visit_.round.mean.span().data() + r * width_;
    const float* eta = visit_.cavity.eta().span().data() + r * width_;
    const float lambda = lambda_;
    float* out = to.data();
    const std::size_t width = to.size();
    if (wanted == Wanted::variance) {
      at_full_width([=]() __attribute__((always_inline)) {
        for (std::size_t i = 0; i < width; ++i) {
          const float residual = lambda * theta[i] - eta[i];
          out[i] = coefficient * residual * residual;
        }
      });
    } else {
      at_full_width([=]() __attribute__((always_inline)) {
        for (std::size_t i = 0; i < width; ++i) {
          out[i] = theta[i] - coefficient * (lambda * theta[i] - eta[i]);
        }
      });
    }
  }

  // Where every coordinate has a λ of its own.
  void write_untouched(Wanted wanted, std::span<const FreeStretch> way, std::size_t r,
                       std::span<float> to) const {
    const std::size_t begin = r * width_;
    const RowPrior prior{visit_.cavity.eta().span().data() + begin,
                         visit_.cavity.lambda_span().data() + begin};
    const auto if_wanted = [&](Wanted what) { return wanted == what ? to.data() : nullptr; };
    travel(numbers_, way, to.size(), prior, decay_, visit_.round.mean.span().data() + begin,
           {if_wanted(Wanted::iterate), if_wanted(Wanted::average), if_wanted(Wanted::mean),
            if_wanted(Wanted::variance)});
    if (wanted != Wanted::average && wanted != Wanted::variance) return;
    const float divisor = wanted == Wanted::average ? float(epoch_steps_) : float(samples_ - 1);
    for (float& x : to) x /= divisor;
  }

  void write_kept(Wanted wanted, std::size_t row, std::span<float> to) const {
    const std::size_t slot = kept_.slot(row);
    constexpr std::array kParts{RowPart::theta, RowPart::sum, RowPart::mean, RowPart::squares};
    const std::array divisors{1.0f, float(epoch_steps_), 1.0f, float(samples_ - 1)};
    const std::size_t which = std::size_t(wanted);
    store_.read(slot, kParts[which], law(), clocks_[slot], steps_, divisors[which], to);
  }

  SparseLinear& model_;
  const Dataset& data_;
  std::size_t client_;
  const Visit& visit_;
  const ChainSettings& settings_;
  std::size_t width_;     // numbers in a row
  std::size_t features_;  // rows of W; the bias is one more
  bool isotropic_;        // Λ_p is one number,
  float lambda_ = 0;      // this one
  SgdNumbers numbers_;
  float decay_ = 0;                                  // wd N_k
  std::vector<FreeMap> maps_{FreeMap{}};             // of 0, 1, 2, … steps; isotropic only
  std::vector<GradientMap> gradient_maps_;           // of 0, 1, 2, … after the gradient
  std::vector<RowMap> row_maps_{RowMap(FreeMap{})};  // the same
  KeptRows kept_;
  std::vector<ChainEvent> events_;
  // What run_planned() changes.
  mutable StepPlans plans_;
  mutable RowStore store_;
  mutable std::vector<RowClock> clocks_;  // of slots that have begun
  mutable std::vector<float> logits_, targets_, outputs_;
  mutable double loss_sum_ = 0;
  int samples_ = 0;
  std::size_t steps_ = 0, epoch_steps_ = 0;
};

}  // namespace

std::unique_ptr<Chain> make_sparse_chain(SparseLinear& model, const ChainInput& input) {
  return std::make_unique<SparseChain>(model, input);
}

}  // namespace fedep
