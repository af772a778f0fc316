#include "fedep/sim/cpu_cohort.h"

#include <algorithm>

#include "fedep/model/linear.h"
#include "fedep/model/loss.h"

namespace fedep {
namespace {

using V = HostVector<float>;

// Steps of the Fisher pass are addressed above those of any chain.
constexpr std::size_t kFisherSteps = std::size_t(1) << 24;

class CpuCohort final : public Cohort<V> {
 public:
  CpuCohort(Model& model, const std::vector<ChainInput>& inputs)
      : model_(model), inputs_(inputs), fisher_(inputs.size()) {
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

  V noise(std::size_t row, int t, int draw) const override {
    V out(model_.size());
    fill_normal(address(row, Purpose::posterior, t, draw), out.span());
    return out;
  }

  std::size_t steps(std::size_t row) const override { return chains_[row]->steps(); }
  double loss_sum(std::size_t row) const override { return chains_[row]->loss_sum(); }

 private:
  const ChainSettings& settings() const { return inputs_[0].settings; }

  Address address(std::size_t row, Purpose purpose, int t, int draw) const {
    constexpr std::size_t kMostDraws = 256;
    return visit_address(inputs_[row].visit, purpose,
                         kFisherSteps + std::size_t(t) * kMostDraws + std::size_t(draw));
  }

  // floor(epochs N_k / B') batches of B' = min(B, N_k): the reference's pass over pooled data.
  const Minibatches& pass_of(std::size_t row, int epochs) const {
    if (!fisher_[row] || fisher_[row]->epochs != epochs) {
      const std::size_t n = inputs_[row].visit.client.examples;
      const std::size_t batch = std::min(std::size_t(settings().client.batch), n);
      fisher_[row] = std::make_unique<Pass>(
          epochs,
          Minibatches(visit_address(inputs_[row].visit, Purpose::shuffle, kFisherSteps), n,
                      std::size_t(epochs), std::max<std::size_t>(batch, 1), Remainder::drop));
    }
    return fisher_[row]->batches;
  }

  void add_batch(std::size_t row, std::span<const float> theta,
                 std::span<const std::uint32_t> examples, int t, int draw,
                 std::span<float> squares) {
    const ChainInput& input = inputs_[row];
    const Address augmentation = address(row, Purpose::augment, t, 0);
    input.data.train_batch(input.client, examples, settings().augment ? &augmentation : nullptr,
                           batch_);
    // The pass that draws labels and the one that differentiates have dropout masks of their own.
    const Address first = address(row, Purpose::dropout, t, 2 * draw);
    const Address second = address(row, Purpose::dropout, t, 2 * draw + 1);
    logits_.resize(batch_.size * model_.outputs());
    model_.logits(theta, batch_, {.dropout = &first}, logits_);
    DrawnTargets drawn =
        sample_labels(model_.target(), logits_, model_.outputs(),
                      address(row, Purpose::labels, t, draw), settings().label_sampler);
    if (!drawn.labels.empty()) batch_.labels = std::move(drawn.labels);
    if (!drawn.reals.empty()) batch_.reals = std::move(drawn.reals);
    const float mean = 1.0f / float(batch_.size);
    if (auto* sparse = dynamic_cast<SparseLinear*>(&model_)) {
      add_touched_rows(*sparse, theta, drawn.tag_targets, mean, squares);
      return;
    }
    model_.add_squared_gradients(theta, batch_, {.dropout = &second}, drawn.tag_targets, squares);
    for (float& x : squares) x *= mean;
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

  Model& model_;
  std::vector<ChainInput> inputs_;
  std::vector<std::unique_ptr<Chain>> chains_;
  mutable std::vector<std::unique_ptr<Pass>> fisher_;  // made when first asked for
  Batch batch_;
  std::vector<float> logits_;
  std::vector<std::uint32_t> touched_;  // rows of a sparse model
  std::vector<float> block_;            // and their squared gradients
};

}  // namespace

std::unique_ptr<Cohort<V>> make_cpu_cohort(Model& model, const std::vector<ChainInput>& inputs) {
  return std::make_unique<CpuCohort>(model, inputs);
}

}  // namespace fedep
