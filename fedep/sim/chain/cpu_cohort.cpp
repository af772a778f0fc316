#include "fedep/sim/chain/cpu_cohort.h"

#include <algorithm>
#include <optional>

#include "fedep/model/layer/loss.h"
#include "fedep/model/layer/vector_width.h"
#include "fedep/model/linear.h"
#include "fedep/sim/chain/fisher_pass.h"
#include "fedep/sim/sparse/sparse_fisher.h"

namespace fedep {
namespace {

using V = HostVector<float>;

class ChainCohort final : public CpuCohort {
 public:
  ChainCohort(Model& model, const std::vector<ChainInput>& inputs)
      : model_(model),
        sparse_(dynamic_cast<SparseLinear*>(&model)),
        inputs_(inputs),
        fisher_(inputs.size()),
        own_steps_(inputs.size()),
        own_losses_(inputs.size()) {
    for (const ChainInput& input : inputs_) chains_.push_back(make_chain(model, input));
  }

  std::size_t clients() const override { return inputs_.size(); }
  double examples(std::size_t row) const override {
    return double(inputs_[row].visit.client.examples);
  }
  const Gaussian<V>& cavity(std::size_t row) const override { return inputs_[row].visit.cavity; }
  double weight_decay() const override { return settings().client.weight_decay; }
  int epochs() const override { return settings().pooled ? 1 : settings().client.epochs; }

  void sgd_epoch(int epoch) override {
    for (const auto& chain : chains_) chain->run_epoch(epoch);
  }
  V iterate(std::size_t row) const override { return chains_[row]->iterate(); }
  V epoch_average(std::size_t row) const override { return chains_[row]->epoch_average(); }
  void accumulate_moments() override {
    for (const auto& chain : chains_) chain->accumulate_moments();
  }
  V mean(std::size_t row) const override { return chains_[row]->mean(); }
  V variance(std::size_t row) const override { return chains_[row]->variance(); }
  std::optional<FreeMean> free_mean(std::size_t row) const override {
    return chains_[row]->free_mean();
  }

  int fisher_batches(std::size_t row, int epochs) const override {
    return int(pass_of(row, epochs).size());
  }

  std::vector<V> squared_gradients(const std::vector<V>& theta, int t, int epochs,
                                   int draw) override {
    std::vector<V> squares;
    for (std::size_t row = 0; row < clients(); ++row) {
      squares.emplace_back(model_.size());
      const Minibatches& pass = pass_of(row, epochs);
      if (std::size_t(t) < pass.size()) {
        add_batch(row, theta[row].span(), pass[std::size_t(t)], t, draw, squares.back().span());
      }
    }
    return squares;
  }

  // A sparse model's batches touch so few rows that whole vectors would be most of the work.
  std::vector<V> fisher_sum(int epochs) override {
    std::vector<V> sums;
    for (std::size_t row = 0; sparse_ != nullptr && row < clients(); ++row) {
      sums.push_back(sum_sparse_squares(*sparse_, inputs_[row], pass_of(row, epochs), mean(row)));
    }
    return sums;
  }
  std::vector<V> running_fisher(const InferenceSettings& inference) override {
    std::vector<V> nu;
    for (std::size_t row = 0; sparse_ != nullptr && row < clients(); ++row) {
      nu.push_back(sparse_running_squares(*sparse_, inputs_[row], pass_of(row, inference.epochs),
                                          mean(row), inference));
    }
    return nu;
  }

  std::vector<V> gradients(const std::vector<V>& theta, int t, int epochs, int draw) override {
    std::vector<V> out;
    for (std::size_t row = 0; row < clients(); ++row) {
      out.emplace_back(model_.size());
      const Minibatches& pass = pass_of(row, epochs);
      if (std::size_t(t) >= pass.size()) continue;
      if (labels_drawn_) loaded_.reset();  // they must be the data's
      labels_drawn_ = false;
      load_batch(row, pass[std::size_t(t)], t);
      const Address dropout = address(row, Purpose::dropout, t, draw);
      const double loss =
          model_.loss_gradient(theta[row].span(), batch_, {.dropout = &dropout}, out.back().span());
      if (draw > 0) continue;
      ++own_steps_[row];
      own_losses_[row] += loss;
    }
    return out;
  }
  double step_rate(int t, int steps) const override {
    return double(rate_of_step(settings(), std::size_t(t), std::size_t(steps)));
  }
  double step_momentum() const override { return settings().client.optimizer.momentum; }

  V noise(std::size_t row, int t, int draw) const override {
    V out(model_.size());
    fill_normal(address(row, Purpose::posterior, t, draw), out.span());
    return out;
  }

  V draw_weights(std::size_t row, int t, int draw, const V& mean, const V& root) const override {
    constexpr std::size_t kBlock = 2048;  // stays in the first cache
    V out(mean.size());
    const Address place = address(row, Purpose::posterior, t, draw);
    for (std::size_t begin = 0; begin < out.size(); begin += kBlock) {
      const std::size_t count = std::min(kBlock, out.size() - begin);
      float* const x = out.span().data() + begin;
      fill_normal(place, {x, count}, begin);
      const float* const m = mean.span().data() + begin;
      const float* const r = root.span().data() + begin;
      at_full_width([=]() __attribute__((always_inline)) {
        for (std::size_t i = 0; i < count; ++i) x[i] = m[i] + x[i] / r[i];
      });
    }
    return out;
  }

  std::size_t steps(std::size_t row) const override {
    return chains_[row]->steps() + own_steps_[row];
  }
  double loss_sum(std::size_t row) const override {
    return chains_[row]->loss_sum() + own_losses_[row];
  }

 private:
  const ChainSettings& settings() const { return inputs_[0].settings; }

  Address address(std::size_t row, Purpose purpose, int t, int draw) const {
    return visit_address(inputs_[row].visit, purpose, fisher_step(t, draw));
  }

  const Minibatches& pass_of(std::size_t row, int epochs) const {
    if (!fisher_[row] || fisher_[row]->epochs != epochs) {
      fisher_[row] = std::make_unique<Pass>(
          epochs,
          fisher_minibatches(visit_address(inputs_[row].visit, Purpose::shuffle, kFisherSteps),
                             inputs_[row].visit.client.examples, epochs,
                             std::size_t(settings().client.batch)));
    }
    return fisher_[row]->batches;
  }

  void add_batch(std::size_t row, std::span<const float> theta,
                 std::span<const std::uint32_t> examples, int t, int draw,
                 std::span<float> squares) {
    load_batch(row, examples, t);
    // The pass that draws labels and the one that differentiates have dropout masks of their own.
    const Address first = address(row, Purpose::dropout, t, 2 * draw);
    const Address second = address(row, Purpose::dropout, t, 2 * draw + 1);
    logits_.resize(batch_.size * model_.outputs());
    model_.logits(theta, batch_, {.dropout = &first}, logits_);
    DrawnTargets drawn =
        sample_labels(model_.likelihood(), logits_, model_.outputs(),
                      address(row, Purpose::labels, t, draw), settings().label_sampler);
    if (settings().tape != nullptr) {
      settings().tape->record(address(row, Purpose::labels, t, draw), drawn.labels);
    }
    labels_drawn_ = true;
    if (!drawn.labels.empty()) batch_.labels = std::move(drawn.labels);
    if (!drawn.reals.empty()) batch_.reals = std::move(drawn.reals);
    const float mean = 1.0f / float(batch_.size);
    if (sparse_ != nullptr) {
      add_touched_rows(*sparse_, theta, drawn.tag_targets, mean, squares);
      return;
    }
    model_.add_squared_gradients(theta, batch_, {.dropout = &second}, drawn.tag_targets, squares);
    for (float& x : squares) x *= mean;
  }

  // Every draw of a step has the same examples, which need not be cropped and projected again. (Their
  // labels are the last draw's.)
  void load_batch(std::size_t row, std::span<const std::uint32_t> examples, int t) {
    const Address augmentation = address(row, Purpose::augment, t, 0);
    const std::vector<std::uint32_t> wanted(examples.begin(), examples.end());
    if (loaded_ && loaded_->place == augmentation && loaded_->examples == wanted) return;
    const ChainInput& input = inputs_[row];
    input.data.train_batch(input.client, examples, settings().augment ? &augmentation : nullptr,
                           batch_);
    loaded_ = Loaded{augmentation, wanted};
  }

  // The same for a model whose batch touches few rows of W: all others stay as they are.
  void add_touched_rows(SparseLinear& model, std::span<const float> theta,
                        std::span<const float> tag_targets, float mean, std::span<float> squares) {
    const std::size_t width = model.outputs();
    model.touched_rows(batch_, touched_);
    block_.assign((touched_.size() + 1) * width, 0.0f);
    model.add_squared_row_gradients(theta, batch_, touched_, tag_targets, block_);
    for (std::size_t k = 0; k <= touched_.size(); ++k) {
      const std::size_t begin = k < touched_.size() ? touched_[k] * width : squares.size() - width;
      for (std::size_t i = 0; i < width; ++i) squares[begin + i] += mean * block_[k * width + i];
    }
  }

  struct Pass {
    Pass(int count, Minibatches made) : epochs(count), batches(std::move(made)) {}
    int epochs;
    Minibatches batches;
  };

  struct Loaded {
    Address place;  // of its augmentation: names round, client and step
    std::vector<std::uint32_t> examples;
  };

  Model& model_;
  SparseLinear* sparse_;  // the model, if it is one; else null
  std::vector<ChainInput> inputs_;
  std::vector<std::unique_ptr<Chain>> chains_;
  mutable std::vector<std::unique_ptr<Pass>> fisher_;  // made when first asked for
  std::vector<std::size_t> own_steps_;                 // of methods with chains of their own,
  std::vector<double> own_losses_;                     // and their mean losses
  Batch batch_;
  std::optional<Loaded> loaded_;  // what batch_ holds
  bool labels_drawn_ = false;     // its labels are the model's
  std::vector<float> logits_;
  std::vector<std::uint32_t> touched_;  // rows of a sparse model
  std::vector<float> block_;            // and their squared gradients
};

}  // namespace

std::unique_ptr<CpuCohort> make_cpu_cohort(Model& model, const std::vector<ChainInput>& inputs) {
  return std::make_unique<ChainCohort>(model, inputs);
}

}  // namespace fedep
