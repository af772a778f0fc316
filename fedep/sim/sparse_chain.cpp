#include "fedep/sim/sparse_chain.h"

#include <algorithm>
#include <array>

#include "fedep/message/check.h"
#include "fedep/model/vector_width.h"
#include "fedep/sim/free_steps.h"
#include "fedep/sim/sgd_update.h"

namespace fedep {
namespace {

// One row's state, numbers of a row each; sum, mean and squares are null where they are not kept.
struct Row {
  float* theta;
  float* momentum;
  float* sum;   // of the epoch's iterates
  float* mean;  // running moments of the samples
  float* squares;
};

// What befalls every row at the end of some step; a row that waits catches up on it later.
struct Event {
  std::size_t step;         // after so many steps
  int sample;               // the sample's number, from 1; 0: an epoch begins
  std::size_t epoch_steps;  // of the epoch that the sample ends
};

// What a row has seen of steps and events.
struct Clock {
  std::size_t step = 0;
  std::size_t event = 0;
};

constexpr std::size_t kNeverTouched = ~std::size_t(0);

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
        rows_(model.size() / width_),
        isotropic_(input.visit.cavity.isotropic()),
        clocks_(rows_, {.step = kNeverTouched, .event = 0}) {
    const double n = double(visit_.client.examples);
    numbers_ = {.lr = float(settings_.client.optimizer.lr),
                .momentum = float(settings_.client.optimizer.momentum),
                .per_example = n > 0 ? float(1 / n) : 0.0f};
    decay_ = float(settings_.client.weight_decay * n);
    if (isotropic_) {
      row_lambda_ = {visit_.cavity.lambda_scalar() + decay_};
    } else {
      row_lambda_.resize(width_);
    }
    theta_ = uninitialised(true);
    momentum_ = uninitialised(true);
    sum_ = uninitialised(settings_.averages);
    mean_ = uninitialised(true);
    squares_ = uninitialised(settings_.keeps_variance);
  }

  void run_epoch(int epoch) override {
    const std::size_t copies = settings_.pooled ? std::size_t(settings_.client.epochs) : 1;
    const Minibatches batches(visit_address(visit_, Purpose::shuffle, std::size_t(epoch)),
                              visit_.client.examples, copies, std::size_t(settings_.client.batch),
                              settings_.client.remainder);
    epoch_steps_ = batches.size();
    if (settings_.averages) events_.push_back({steps_, 0, 0});
    if (isotropic_) {
      while (maps_.size() <= steps_ + batches.size()) {
        maps_.push_back(next(maps_.back(), numbers_, double(row_lambda_[0])));
      }
    }
    for (std::size_t i = 0; i < batches.size(); ++i) step(batches[i]);
  }

  HostVector<float> iterate() const override { return collect(Wanted::iterate); }
  HostVector<float> epoch_average() const override {
    return collect(epoch_steps_ == 0 ? Wanted::iterate : Wanted::average);
  }
  void accumulate_moments() override { events_.push_back({steps_, ++samples_, epoch_steps_}); }
  HostVector<float> mean() const override {
    return collect(samples_ == 0 ? Wanted::iterate : Wanted::mean);
  }
  HostVector<float> variance() const override {
    if (samples_ < 2 || !squares_) {
      fail("chain", "samples with second moments", "at least 2", fmt::format("{}", samples_));
    }
    return collect(Wanted::variance);
  }
  std::size_t steps() const override { return steps_; }
  double loss_sum() const override { return loss_sum_; }

 private:
  // Pages of rows that are never touched are never written, so they cost nothing.
  std::unique_ptr<float[]> uninitialised(bool kept) const {
    return kept ? std::make_unique_for_overwrite<float[]>(model_.size()) : nullptr;
  }

  Row row(std::size_t r) const {
    const auto at = [&](const std::unique_ptr<float[]>& values) {
      return values ? values.get() + r * width_ : nullptr;
    };
    return {at(theta_), at(momentum_), at(sum_), at(mean_), at(squares_)};
  }

  // Of a row; valid until the next call.
  RowPrior prior(std::size_t r) const {
    const float* eta = visit_.cavity.eta().span().data() + r * width_;
    if (!isotropic_) {
      const float* lambda = visit_.cavity.lambda_span().data() + r * width_;
      for (std::size_t i = 0; i < width_; ++i) row_lambda_[i] = lambda[i] + decay_;
    }
    return {eta, row_lambda_.data()};
  }

  void begin(std::size_t r, const Row& out) const {
    std::copy_n(visit_.round.mean.span().data() + r * width_, width_, out.theta);
    std::fill_n(out.momentum, width_, 0.0f);  // the rest begins with the first epoch or sample
  }

  // Through all steps and events up to now.
  void catch_up(Clock& clock, const RowPrior& prior, const Row& out) const {
    for (; clock.event < events_.size(); ++clock.event) {
      const Event& event = events_[clock.event];
      advance(event.step - clock.step, prior, out);
      clock.step = event.step;
      if (event.sample == 0) {
        std::fill_n(out.sum, width_, 0.0f);
      } else {
        add_sample(event, out);
      }
    }
    advance(steps_ - clock.step, prior, out);
    clock.step = steps_;
  }

  void advance(std::size_t steps, const RowPrior& prior, const Row& out) const {
    if (steps == 0) return;
    if (isotropic_) {
      advance_isotropic(maps_[steps], steps, width_, prior, {out.theta, out.momentum, out.sum});
    } else {
      advance_diagonal(numbers_, steps, width_, prior, {out.theta, out.momentum, out.sum});
    }
  }

  void add_sample(const Event& event, const Row& out) const {
    std::span<const float> sample(out.theta, width_);
    std::vector<float> average;
    if (settings_.averages && event.epoch_steps > 0) {
      average.assign(out.sum, out.sum + width_);
      for (float& x : average) x /= float(event.epoch_steps);
      sample = average;
    }
    if (event.sample == 1) {
      std::copy(sample.begin(), sample.end(), out.mean);
      if (out.squares != nullptr) std::fill_n(out.squares, width_, 0.0f);
    } else {
      accumulate(event.sample, sample, {out.mean, width_},
                 std::span(out.squares, out.squares == nullptr ? 0 : width_));
    }
  }

  void step(std::span<const std::uint32_t> examples) {
    const Address augmentation = visit_address(visit_, Purpose::augment, steps_);
    data_.train_batch(client_, examples, settings_.augment ? &augmentation : nullptr, batch_);
    model_.touched_rows(batch_, touched_);
    gradient_.resize((touched_.size() + 1) * width_);
    for (const std::uint32_t r : touched_) bring_up_to_date(r);
    bring_up_to_date(rows_ - 1);
    loss_sum_ += model_.row_gradient({theta_.get(), model_.size()}, batch_, touched_, gradient_);
    const float scale = settings_.client.loss_times_batch ? float(batch_.size) : 1.0f;
    for (std::size_t k = 0; k <= touched_.size(); ++k) {
      const std::size_t r = k < touched_.size() ? touched_[k] : rows_ - 1;
      gradient_step(scale, gradient_.data() + k * width_, prior(r), row(r));
      clocks_[r].step = steps_ + 1;
    }
    ++steps_;
  }

  void bring_up_to_date(std::size_t r) {
    Clock& clock = clocks_[r];
    if (clock.step == kNeverTouched) {
      begin(r, row(r));
      clock = {};
    }
    if (clock.step < steps_ || clock.event < events_.size()) catch_up(clock, prior(r), row(r));
  }

  void gradient_step(float scale, const float* gradient, const RowPrior& prior,
                     const Row& out) const {
    const float mu = numbers_.momentum, lr = numbers_.lr, n = numbers_.per_example;
    const std::size_t width = width_;
    const float *eta = prior.eta, *lambdas = prior.lambda;
    const auto loop = [=](auto lambda) __attribute__((always_inline)) {
      float* __restrict m = out.momentum, * __restrict theta = out.theta;
      for (std::size_t i = 0; i < width; ++i) {
        m[i] = mu * m[i] + scale * gradient[i] + (lambda(i) * theta[i] - eta[i]) * n;
        theta[i] -= lr * m[i];
      }
    };
    if (isotropic_) {
      const float one = *lambdas;
      at_full_width([=]() __attribute__((always_inline)) {
        loop([=](std::size_t) __attribute__((always_inline)) { return one; });
      });
    } else {
      at_full_width([=]() __attribute__((always_inline)) {
        loop([=](std::size_t i) __attribute__((always_inline)) { return lambdas[i]; });
      });
    }
    if (out.sum != nullptr) add({out.theta, width}, {out.sum, width});
  }

  HostVector<float> collect(Wanted wanted) const {
    HostVector<float> out(model_.size());
    const float coefficient = isotropic_ ? float(untouched_coefficient(wanted)) : 0.0f;
    const std::vector<FreeStretch> way = isotropic_ ? std::vector<FreeStretch>() : way_so_far();
    std::vector<float> scratch(5 * width_);
    for (std::size_t r = 0; r < rows_;) {
      std::size_t end = r;  // of rows that were never touched, from this one on
      while (end < rows_ && clocks_[end].step == kNeverTouched) ++end;
      if (end > r) {
        const std::span<float> to = out.span().subspan(r * width_, (end - r) * width_);
        if (isotropic_) {
          write_untouched(wanted, coefficient, r, to);
        } else {
          write_untouched(wanted, way, r, to);
        }
        r = end;
      } else {
        write_row(wanted, r, scratch, out.span().subspan(r * width_, width_));
        ++r;
      }
    }
    return out;
  }

  // The steps and events of a row that no batch has touched yet.
  std::vector<FreeStretch> way_so_far() const {
    std::vector<FreeStretch> way;
    std::size_t done = 0;
    for (const Event& event : events_) {
      const bool averaged = settings_.averages && event.epoch_steps > 0;
      way.push_back({.steps = event.step - done,
                     .sample = event.sample,
                     .averaged = averaged ? float(event.epoch_steps) : 0.0f,
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
    for (const Event& event : events_) {
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
    const float lambda = row_lambda_[0];
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

  // `scratch` has room for a row's state; the row itself stays as it is.
  void write_row(Wanted wanted, std::size_t r, std::span<float> scratch,
                 std::span<float> to) const {
    const Row stored = row(r);
    const auto part = [&](std::size_t i, const float* kept) {
      return kept == nullptr ? nullptr : scratch.data() + i * width_;
    };
    const Row copy{part(0, stored.theta), part(1, stored.momentum), part(2, stored.sum),
                   part(3, stored.mean), part(4, stored.squares)};
    Clock clock = clocks_[r];
    const std::array from{stored.theta, stored.momentum, stored.sum, stored.mean, stored.squares};
    const std::array into{copy.theta, copy.momentum, copy.sum, copy.mean, copy.squares};
    for (std::size_t i = 0; i < from.size(); ++i) {
      if (from[i] != nullptr) std::copy_n(from[i], width_, into[i]);
    }
    catch_up(clock, prior(r), copy);
    const std::array of_wanted{copy.theta, copy.sum, copy.mean, copy.squares};
    const std::array divisor{1.0f, float(epoch_steps_), 1.0f, float(samples_ - 1)};
    const std::size_t which = std::size_t(wanted);
    for (std::size_t i = 0; i < width_; ++i) to[i] = of_wanted[which][i] / divisor[which];
  }

  SparseLinear& model_;
  const Dataset& data_;
  std::size_t client_;
  const Visit& visit_;
  const ChainSettings& settings_;
  std::size_t width_;  // numbers in a row
  std::size_t rows_;   // of W, and the bias as the last
  bool isotropic_;     // Λ_p is one number
  SgdNumbers numbers_;
  float decay_ = 0;                        // wd N_k
  mutable std::vector<float> row_lambda_;  // Λ_p: one number, or of the row last asked for
  std::vector<FreeMap> maps_{FreeMap{}};   // of 0, 1, 2, … steps; isotropic only
  std::vector<Clock> clocks_;
  std::unique_ptr<float[]> theta_, momentum_, sum_, mean_, squares_;  // only touched rows are set
  std::vector<Event> events_;
  Batch batch_;
  std::vector<std::uint32_t> touched_;
  std::vector<float> gradient_;  // [touched rows, then the bias]
  int samples_ = 0;
  std::size_t steps_ = 0, epoch_steps_ = 0;
  double loss_sum_ = 0;
};

}  // namespace

std::unique_ptr<Chain> make_sparse_chain(SparseLinear& model, const ChainInput& input) {
  return std::make_unique<SparseChain>(model, input);
}

}  // namespace fedep
