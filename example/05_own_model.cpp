// 05: a model of one's own. Whoever gives logits and gradients for one long vector of weights is a
// Model, and every algorithm and inference method here can train it. This one has a hidden layer of
// tanh; the task, the sign of a product, is none a linear model could learn.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/inference/method.h"
#include "fedep/model/layer/loss.h"
#include "fedep/model/linear.h"
#include "fedep/random/stream.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/place/serial.h"
#include "fedep/sim/process.h"
#include "fedep/sim/score/evaluation.h"

using namespace fedep;

constexpr std::size_t kHidden = 12;

// logit = Σ_h out_h tanh(in_h · x + bias_h); weights lie as in [kHidden, 2], out, bias.
class Perceptron final : public Model {
 public:
  const Layout& layout() const override { return layout_; }
  std::size_t outputs() const override { return 1; }
  Likelihood likelihood() const override { return TargetKind::binary; }
  void initialise(std::uint64_t seed, std::span<float> theta) const override {
    fill_normal({.seed = seed, .purpose = Purpose::initial_weights}, theta);
  }

  double loss_gradient(std::span<const float> theta, const Batch& batch, const Mode& mode,
                       std::span<float> gradient) override {
    for (float& g : gradient) g *= mode.keep;
    return backward(theta, batch, Scale::batch_mean,
                    [&](std::size_t i, float g) { gradient[i] += g; });
  }
  void add_squared_gradients(std::span<const float> theta, const Batch& batch, const Mode&,
                             std::span<const float>, std::span<float> sum) override {
    backward(theta, batch, Scale::per_example, [&](std::size_t i, float g) { sum[i] += g * g; });
  }
  void logits(std::span<const float> w, const Batch& batch, const Mode&,
              std::span<float> out) override {
    for (std::size_t i = 0; i < batch.size; ++i) {
      out[i] = 0;
      for (std::size_t h = 0; h < kHidden; ++h) {
        out[i] += w[2 * kHidden + h] * hidden(w, &batch.dense[2 * i], h);
      }
    }
  }

 private:
  static float hidden(std::span<const float> w, const float* x, std::size_t h) {
    return std::tanh(w[2 * h] * x[0] + w[2 * h + 1] * x[1] + w[3 * kHidden + h]);
  }

  // use(i, g): one example adds g to coordinate i of the gradient.
  template <class Use>
  double backward(std::span<const float> w, const Batch& batch, Scale scale, const Use& use) {
    std::vector<float> z(batch.size), delta(batch.size);
    logits(w, batch, {}, z);
    const double loss = loss_delta(likelihood(), batch, z, 1, scale, {}, delta);
    for (std::size_t i = 0; i < batch.size; ++i) {
      for (std::size_t h = 0; h < kHidden; ++h) {
        const float* x = &batch.dense[2 * i];
        const float a = hidden(w, x, h), d = delta[i] * w[2 * kHidden + h] * (1 - a * a);
        use(2 * h, d * x[0]);
        use(2 * h + 1, d * x[1]);
        use(2 * kHidden + h, delta[i] * a);
        use(3 * kHidden + h, d);
      }
    }
    return loss;
  }

  Layout layout_{{"in", {kHidden, 2}}, {"out", {kHidden}}, {"bias", {kHidden}}};
};

// Four clients of 200 rows, and as many held out.
std::unique_ptr<Dataset> quadrants() {
  Batch train, test;
  ClientRows clients;
  Stream stream({.seed = 5});
  for (const char* id : {"a", "b", "c", "d"}) clients.add(id, 200);
  for (Batch* part : {&train, &test}) {
    for (part->size = 0; part->size < 800; ++part->size) {
      const double x = stream.normal(), y = stream.normal();
      part->dense.insert(part->dense.end(), {float(x), float(y)});
      part->labels.push_back(x * y > 0);
    }
  }
  const DatasetInfo info{.name = "quadrants",
                         .features = {2},
                         .target = TargetKind::binary,
                         .outputs = 1,
                         .feature_names = {"x", "y"},
                         .output_names = {}};
  return memory_dataset(info, {clients, batch_rows(train)}, {clients, batch_rows(test)});
}

template <class MakeModel>
double accuracy_of(const Dataset& data, const Recipe& recipe, const MakeModel& make) {
  const Population population = make_population(data.clients());
  HostVector<float> initial(make()->size());
  make()->initialise(recipe.seed, initial.span());
  const auto inference = make_local_learning(data, population, recipe, make());
  const auto executor = make_serial(population, *inference, nullptr);
  const Phase phase =
      plan_phases(recipe, [](std::string_view name) { return find_method(name).family; })[0];
  ServerState state =
      begin_phase(initial_server_state(recipe.server, initial), phase, 0, population);
  while (state.round < phase.rounds) {
    play_round(state, phase, recipe.seed, population, *executor);
  }
  return Evaluation(data, make()).at(point_estimate(state))[0].second;
}

int main() {
  prepare_process();  // BLAS and memory, as the simulator wants them
  const Recipe recipe = parse_recipe(R"(
seed = 2
[data]
name = "quadrants"
[client]
epochs = 5
optimizer = { name = "sgd", lr = 0.2, momentum = 0.5 }
[server]
clients_per_round = 4
[[phase]]
algorithm = "fed_sep"
rounds = 30
[phase.inference]
name = "scaled_identity"
alpha = 0.05
)");
  const auto data = quadrants();
  const double linear = accuracy_of(*data, recipe, []() -> std::unique_ptr<Model> {
    return make_linear({.features = 2, .outputs = 1, .target = TargetKind::binary});
  });
  const double own = accuracy_of(
      *data, recipe, []() -> std::unique_ptr<Model> { return std::make_unique<Perceptron>(); });
  fmt::print("linear: {:.3f}\nown:    {:.3f}\n", linear, own);
  return own > 0.9 && own > linear + 0.3 ? 0 : 1;
}
