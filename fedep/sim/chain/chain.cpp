#include "fedep/sim/chain/chain.h"

#include <cmath>

#include "fedep/algorithm/schedule.h"
#include "fedep/message/check.h"
#include "fedep/sim/chain/kept_vector.h"
#include "fedep/sim/chain/sgd_update.h"
#include "fedep/sim/sparse/sparse_chain.h"

namespace fedep {
namespace {

class DenseChain final : public Chain {
 public:
  DenseChain(Model& model, const ChainInput& input)
      : model_(model),
        data_(input.data),
        client_(input.client),
        visit_(input.visit),
        settings_(input.settings),
        live_(model.live()),
        dead_(complement(live_, model.size())) {
    theta_.assign(visit_.round.mean.begin(), visit_.round.mean.end());
    momentum_.resize(theta_.size());
    const double n = double(visit_.client.examples);
    steps_in_all_ = steps_of_visit(settings_.client, settings_.pooled, visit_.client.examples);
    numbers_ = {.lr = rate_of_step(settings_, 0, steps_in_all_),
                .momentum = float(settings_.client.optimizer.momentum),
                .per_example = n > 0 ? float(1 / n) : 0.0f};
    const float decay = float(settings_.client.weight_decay * n);
    const std::span<const float> cavity = visit_.cavity.lambda_span();
    lambda_.resize(cavity.size());
    for (std::size_t i = 0; i < cavity.size(); ++i) lambda_[i] = cavity[i] + decay;
    if (settings_.client.loss_times_batch) gradient_.resize(theta_.size());
  }

  void run_epoch(int epoch) override {
    const std::size_t copies = settings_.pooled ? std::size_t(settings_.client.epochs) : 1;
    const Minibatches batches(visit_address(visit_, Purpose::shuffle, std::size_t(epoch)),
                              visit_.client.examples, copies, std::size_t(settings_.client.batch),
                              settings_.client.remainder);
    if (settings_.averages) sum_.assign(theta_.size(), 0.0f);
    epoch_steps_ = batches.size();
    for (std::size_t i = 0; i < batches.size(); ++i) step(batches[i]);
    if (!every_coordinate()) {
      for (const Range& range : dead_) coast_range(range, int(batches.size()));
    }
  }

  HostVector<float> iterate() const override { return HostVector<float>(theta_.copy()); }

  HostVector<float> epoch_average() const override {
    if (epoch_steps_ == 0) return iterate();
    return HostVector<float>(sum_.copy()) / float(epoch_steps_);
  }

  void accumulate_moments() override {
    ++samples_;
    mean_.resize(theta_.size());
    if (settings_.keeps_variance) squares_.resize(theta_.size());
    if (settings_.averages) {
      accumulate(samples_, epoch_average().span(), mean_, squares_);
    } else {
      accumulate(samples_, theta_, mean_, squares_);
    }
  }

  HostVector<float> mean() const override {
    return samples_ == 0 ? iterate() : HostVector<float>(mean_.copy());
  }
  HostVector<float> variance() const override {
    if (samples_ < 2 || squares_.empty()) {
      fail("chain", "samples with second moments", "at least 2", fmt::format("{}", samples_));
    }
    return HostVector<float>(squares_.copy()) / float(samples_ - 1);
  }
  std::size_t steps() const override { return steps_; }
  double loss_sum() const override { return loss_sum_; }

 private:
  void step(std::span<const std::uint32_t> examples) {
    numbers_.lr = rate_of_step(settings_, steps_, steps_in_all_);
    const Address augmentation = visit_address(visit_, Purpose::augment, steps_);
    const Address dropout = visit_address(visit_, Purpose::dropout, steps_);
    data_.train_batch(client_, examples, settings_.augment ? &augmentation : nullptr, batch_);
    if (gradient_.empty()) {
      loss_sum_ += model_.loss_gradient(
          theta_, batch_, {.dropout = &dropout, .keep = numbers_.momentum}, momentum_);
    } else {
      loss_sum_ += model_.loss_gradient(theta_, batch_, {.dropout = &dropout}, gradient_);
      const float scale = float(batch_.size);
      for (const Range& range : live_) {
        for (std::size_t i = range.begin; i < range.end; ++i) {
          momentum_[i] = numbers_.momentum * momentum_[i] + scale * gradient_[i];
        }
      }
    }
    // Noise comes after the momentum's decay.
    const bool all = every_coordinate();
    if (all) {
      for (const Range& range : dead_) {
        for (std::size_t i = range.begin; i < range.end; ++i) momentum_[i] *= numbers_.momentum;
      }
    }
    if (settings_.langevin) add_noise();
    for (const Range& range : live_) step_range(range);
    if (all) {
      for (const Range& range : dead_) step_range(range);
    }
    if (settings_.averages) add(theta_, sum_);
    ++steps_;
  }

  // Averages, noise and rates that change need every coordinate at every step.
  bool every_coordinate() const {
    return settings_.averages || settings_.langevin || settings_.visit_rate;
  }

  std::span<const float> lambda_of(const Range& range) const {
    if (lambda_.size() == 1) return lambda_;
    return std::span(lambda_).subspan(range.begin, range.end - range.begin);
  }
  template <class T>
  static std::span<T> part(std::span<T> values, const Range& range) {
    return values.subspan(range.begin, range.end - range.begin);
  }

  void step_range(const Range& range) {
    prior_step(numbers_, part(eta(), range), lambda_of(range), part(std::span(momentum_), range),
               part(std::span(theta_), range));
  }
  void coast_range(const Range& range, int steps) {
    coast(numbers_, steps, part(eta(), range), lambda_of(range), part(std::span(momentum_), range),
          part(std::span(theta_), range));
  }
  std::span<const float> eta() const { return visit_.cavity.eta().span(); }

  // Noise in the momentum that makes exp(-N_k objective) the chain's stationary density for small
  // steps: the heavy-ball recursion θ'' = … + ε σ ξ has variance ε²σ²/(2(1-μ)κ) about a mode of
  // curvature κ/ε, which is 1/(N_k κ/ε) if σ² = 2(1-μ)/(ε N_k).
  void add_noise() {
    noise_.resize(theta_.size());
    fill_normal(visit_address(visit_, Purpose::langevin, steps_), noise_);
    const double mu = settings_.client.optimizer.momentum;
    const double lr = settings_.scheduled ? double(numbers_.lr) : settings_.client.optimizer.lr;
    const float sigma = float(std::sqrt(2 * (1 - mu) * double(numbers_.per_example) / lr));
    for (std::size_t i = 0; i < noise_.size(); ++i) momentum_[i] += sigma * noise_[i];
  }

  Model& model_;
  const Dataset& data_;
  std::size_t client_;
  const Visit& visit_;
  const ChainSettings& settings_;
  std::vector<Range> live_, dead_;
  SgdNumbers numbers_;
  KeptVector theta_, momentum_;
  KeptVector lambda_;  // Λ_p: one element or all
  KeptVector gradient_, noise_, sum_, mean_, squares_;
  Batch batch_;
  int samples_ = 0;
  std::size_t steps_ = 0, epoch_steps_ = 0, steps_in_all_ = 0;
  double loss_sum_ = 0;
};

}  // namespace

void check_chain(const ChainSettings& settings) {
  if (settings.client.optimizer.name != "sgd") {
    fail("client.optimizer", "name", "sgd, which chains run", settings.client.optimizer.name);
  }
}

Address visit_address(const Visit& visit, Purpose purpose, std::size_t step) {
  return {.seed = visit.round.seed,
          .purpose = purpose,
          .round = std::uint32_t(visit.round.round),
          .client = visit.client.key,
          .step = std::uint32_t(step)};
}

bool makes_steps(const ClientSettings& client, bool pooled, std::size_t examples) {
  const std::size_t in_an_epoch = pooled ? std::size_t(client.epochs) * examples : examples;
  return in_an_epoch >= std::size_t(client.remainder == Remainder::drop ? client.batch : 1);
}

std::size_t steps_of_visit(const ClientSettings& client, bool pooled, std::size_t examples) {
  const std::size_t epochs = std::size_t(client.epochs), batch = std::size_t(client.batch);
  const std::size_t in_an_epoch = pooled ? epochs * examples : examples;
  const bool keeps = client.remainder == Remainder::keep;
  return (in_an_epoch + (keeps ? batch - 1 : 0)) / batch * (pooled ? 1 : epochs);
}

float rate_of_step(const ChainSettings& settings, std::size_t i, std::size_t steps) {
  const double lr = settings.client.optimizer.lr * settings.rate;
  if (!settings.visit_rate) return float(lr);
  return float(lr * scheduled(*settings.visit_rate, std::int64_t(i), std::int64_t(steps)));
}

Minibatches::Minibatches(const Address& address, std::size_t examples, std::size_t copies,
                         std::size_t batch, Remainder remainder)
    : batch_(batch) {
  Stream stream(address);
  order_ = permutation(stream, examples * copies);
  for (std::uint32_t& index : order_) index %= std::uint32_t(examples);
  count_ = order_.size() / batch;
  if (remainder == Remainder::keep && order_.size() % batch != 0) ++count_;
}

std::span<const std::uint32_t> Minibatches::operator[](std::size_t i) const {
  const std::size_t begin = i * batch_;
  return std::span(order_).subspan(begin, std::min(batch_, order_.size() - begin));
}

std::unique_ptr<Chain> make_chain(Model& model, const ChainInput& input) {
  auto* sparse = dynamic_cast<SparseLinear*>(&model);
  // Langevin noise moves every coordinate in every step; steps without data are one power of a map
  // only while the rate stays.
  const bool dense = input.settings.langevin || input.settings.visit_rate;
  if (sparse != nullptr && !dense) return make_sparse_chain(*sparse, input);
  return make_dense_chain(model, input);
}

std::unique_ptr<Chain> make_dense_chain(Model& model, const ChainInput& input) {
  return std::make_unique<DenseChain>(model, input);
}

}  // namespace fedep
