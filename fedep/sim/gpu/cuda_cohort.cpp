#include "fedep/sim/gpu/cuda_cohort.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "fedep/inference/infer_cohort.h"
#include "fedep/message/check.h"
#include "fedep/model/registry.h"
#include "fedep/sim/chain/learning_parts.h"
#include "fedep/sim/gpu/cuda_chains.h"
#include "fedep/sim/gpu/cuda_fisher.h"

namespace fedep {
namespace {

using V = DeviceVector;

class CudaCohort final : public Cohort<V> {
 public:
  CudaCohort(const CohortRound& round, CudaChains& chains, CudaFisher& fisher)
      : round_(round), chains_(chains), fisher_(fisher) {}

  std::size_t clients() const override { return round_.visits.size(); }
  double examples(std::size_t row) const override {
    return double(round_.visits[row].client.examples);
  }
  const Gaussian<V>& cavity(std::size_t row) const override { return round_.visits[row].cavity; }
  double weight_decay() const override { return round_.settings.client.weight_decay; }
  int epochs() const override { return round_.settings.pooled ? 1 : round_.settings.client.epochs; }

  void sgd_epoch(int epoch) override { chains_.run_epoch(epoch); }
  V iterate(std::size_t row) const override { return chains_.iterate(row); }
  V epoch_average(std::size_t row) const override { return chains_.epoch_average(row); }
  void accumulate_moments() override { chains_.accumulate_moments(); }
  V mean(std::size_t row) const override { return chains_.mean(row); }
  V variance(std::size_t row) const override { return chains_.variance(row); }
  std::size_t steps(std::size_t row) const override { return chains_.steps(row); }
  double loss_sum(std::size_t row) const override { return chains_.loss_sum(row); }

  int fisher_batches(std::size_t row, int epochs) const override {
    return fisher_.batches(row, epochs);
  }
  std::vector<V> squared_gradients(const std::vector<V>& theta, int t, int epochs,
                                   int draw) override {
    return fisher_.squared_gradients(theta, t, epochs, draw, chains_);
  }
  V noise(std::size_t row, int t, int draw) const override { return fisher_.noise(row, t, draw); }
  std::vector<V> fisher_sum(int epochs) override { return fisher_.fisher_sum(epochs, chains_); }
  std::vector<V> running_fisher(const InferenceSettings& settings) override {
    return fisher_.running_fisher(settings, chains_);
  }
  std::vector<Gaussian<V>> sample_moments_of_all(const InferenceSettings& settings) override {
    return chains_.sample_moments(settings);
  }

 private:
  const CohortRound& round_;
  CudaChains& chains_;
  CudaFisher& fisher_;
};

// Everything that depends on how many clients there is room for.
struct Room {
  Room(const Recipe& recipe, const Dataset& dataset, DeviceData& data,
       const Coordinates& coordinates, const CohortCapacity& capacity, const LabelTape* tape)
      : model(make_cohort_model(recipe.model, dataset.info(), capacity)),
        clients(capacity.clients),
        chains({*model, data, coordinates, capacity.clients, capacity.rows}),
        fisher({*model, data, coordinates, capacity.clients, capacity.rows},
               wider_models(recipe, dataset, capacity), tape) {}

  // Wider models are of no use to clients that take turns.
  static CudaFisher::MakeModel wider_models(const Recipe& recipe, const Dataset& dataset,
                                            const CohortCapacity& capacity) {
    if (find_cohort_model(recipe.model.name).takes_turns) return nullptr;
    return [&recipe, &dataset, capacity](std::size_t clients) {
      return make_cohort_model(recipe.model, dataset.info(),
                               {clients, capacity.rows, capacity.precision});
    };
  }

  std::unique_ptr<CohortModel> model;
  std::size_t clients;
  CudaChains chains;
  CudaFisher fisher;
};

// Clients are an axis of the kernels' grids, twice over where a message has two arrays.
constexpr std::size_t kMostClients = 65535 / 2;

// The largest batch that any client can have.
std::size_t largest_batch(const Dataset& data, const ClientSettings& settings) {
  std::size_t most = 1;
  for (const auto& [id, examples] : data.clients()) {
    most = std::max(most, examples * std::size_t(settings.epochs));  // pooled epochs
  }
  return std::min(most, std::size_t(settings.batch));
}

class CudaLearning final : public CudaInference {
 public:
  CudaLearning(const Dataset& data, const Recipe& recipe, ProductPrecision precision,
               const LabelTape* tape)
      : dataset_(data),
        recipe_(recipe),
        precision_(precision),
        tape_(tape),
        data_(upload_training_data(data, recipe.data.augment)),
        coordinates_(*make_model(recipe.model, data.info())) {
    check_chain({.client = recipe.client});
    make_room(std::size_t(recipe.server.clients_per_round));
  }

  std::vector<ClientRunOf<V>> infer(std::uint64_t seed, std::int64_t round, const Phase& phase,
                                    const DeviceVector& start, std::vector<CohortVisit> visits,
                                    std::vector<VisitNumbers>& numbers) override {
    check_same_size("infer", "numbers", visits.size(), numbers.size());
    if (visits.empty()) return {};
    if (visits.size() > room_->clients) make_room(visits.size());
    const ChainSettings settings = chain_settings(recipe_, phase);
    // Largest first: those that still have steps to make are then neighbours.
    std::vector<std::size_t> place(visits.size());
    std::iota(place.begin(), place.end(), std::size_t(0));
    std::ranges::stable_sort(place, std::greater<>(),
                             [&](std::size_t i) { return visits[i].client.examples; });
    std::vector<CohortVisit> ordered;
    for (const std::size_t i : place) ordered.push_back(std::move(visits[i]));
    const CohortRound now{seed, round, settings, ordered};
    room_->chains.begin(now, start, phase.cavity != CavityKind::flat);
    room_->fisher.begin(now);
    CudaCohort cohort(now, room_->chains, room_->fisher);
    std::vector<ClientRunOf<V>> inferred = infer_cohort(cohort, *phase.algorithm, phase.inference);
    if (meanwhile_) wait_for_device(meanwhile_);
    std::vector<ClientRunOf<V>> runs(visits.size());
    for (std::size_t row = 0; row < place.size(); ++row) {
      runs[place[row]] = std::move(inferred[row]);
      numbers[place[row]].steps = cohort.steps(row);
      numbers[place[row]].loss_sum = cohort.loss_sum(row);
    }
    return runs;
  }

  double training_seconds() const override { return room_->chains.training_seconds(); }

 private:
  void make_room(std::size_t clients) {
    if (clients > kMostClients) {
      throw InputError(
          fmt::format("server.clients_per_round must be at most {} for --device cuda, but is {}",
                      kMostClients, clients));
    }
    room_.reset();  // before the next one asks for memory
    const CohortCapacity capacity{.clients = clients,
                                  .rows = largest_batch(dataset_, recipe_.client),
                                  .precision = precision_};
    room_ = std::make_unique<Room>(recipe_, dataset_, *data_, coordinates_, capacity, tape_);
  }

  const Dataset& dataset_;
  Recipe recipe_;
  ProductPrecision precision_;
  const LabelTape* tape_;
  std::unique_ptr<DeviceData> data_;
  Coordinates coordinates_;
  std::unique_ptr<Room> room_;
};

}  // namespace

std::unique_ptr<CudaInference> make_cuda_inference(const Dataset& data, const Recipe& recipe,
                                                   ProductPrecision precision,
                                                   const LabelTape* tape) {
  return std::make_unique<CudaLearning>(data, recipe, precision, tape);
}

}  // namespace fedep
