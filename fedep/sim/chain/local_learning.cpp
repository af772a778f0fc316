#include "fedep/sim/chain/local_learning.h"

#include "fedep/inference/infer_cohort.h"
#include "fedep/sim/chain/cpu_cohort.h"
#include "fedep/sim/chain/learning_parts.h"
#include "fedep/sim/rows/row_inference.h"
#include "fedep/sim/sparse/own_words.h"
#include "fedep/sim/sparse/silent_rows.h"

namespace fedep {
namespace {

class LocalLearning final : public LocalInference {
 public:
  LocalLearning(const Dataset& data, const Population& clients, const Recipe& recipe,
                std::unique_ptr<Model> model, LabelTape* tape)
      : data_(data), clients_(clients), recipe_(recipe), model_(std::move(model)), tape_(tape) {
    sparse_ = dynamic_cast<const SparseLinear*>(model_.get());
  }

  Reach reach(const Phase& phase, const ClientInfo& client) const override {
    if (sparse_ == nullptr || !moves_own_weights_alone(recipe_, phase)) return {};
    const std::vector<Range> silent = silent_weights(*sparse_, data_, clients_.find(client.key));
    return {complement(silent, model_->size()), model_->size()};
  }

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    const Phase& phase = visit.round.phase;
    const std::size_t client = clients_.find(visit.client.key);
    if (phase.family == Family::full) {
      return infer_on_rows(data_, client, visit, recipe_.client.weight_decay, *model_, numbers);
    }
    if (visit.reach != nullptr) {
      const OwnWords own(data_, *visit.reach, sparse_->outputs());
      const std::unique_ptr<SparseLinear> small = sparse_->with_features(own.words());
      return infer_by_chains(*small, own, client, visit, numbers);
    }
    ClientRun run = infer_by_chains(*model_, data_, client, visit, numbers);
    run.silent =
        run.silent_law ? silent_weights(*sparse_, data_, client) : silent_of(run, visit, client);
    return run;
  }

 private:
  ClientRun infer_by_chains(Model& model, const Dataset& data, std::size_t client,
                            const Visit& visit, VisitNumbers& numbers) const {
    const Phase& phase = visit.round.phase;
    ChainSettings settings = chain_settings(recipe_, phase);
    settings.tape = tape_;
    const auto cohort = make_cpu_cohort(model, {{data, client, visit, settings}});
    std::vector<ClientRun> runs = infer_cohort(*cohort, *phase.algorithm, phase.inference);
    numbers.steps = cohort->steps(0);
    numbers.loss_sum = cohort->loss_sum(0);
    if (phase.shares_means) {
      const FreeMean free = cohort->free_mean(0).value();
      const double lambda = double(runs[0].tilted.lambda_scalar());
      runs[0].silent_law = {.by_mean = lambda * free.by_start, .by_cavity = lambda * free.by_eta};
    }
    return std::move(runs[0]);
  }

  // Where weights decay, or noise moves them, all of them say something.
  std::vector<Range> silent_of(const ClientRun& run, const Visit& visit, std::size_t client) const {
    const Phase& phase = visit.round.phase;
    const bool may = sparse_ != nullptr && phase.stateful() && !phase.inference.langevin &&
                     recipe_.client.weight_decay == 0;
    if (!may) return {};
    std::vector<Range> silent = silent_weights(*sparse_, data_, client);
    const bool inferred = phase.algorithm->needs == Needs::tilted;
    if (inferred && !keeps_precisions(run.tilted, visit.cavity, silent)) silent.clear();
    return silent;
  }

  const Dataset& data_;
  const Population& clients_;
  const Recipe& recipe_;
  std::unique_ptr<Model> model_;
  const SparseLinear* sparse_;  // the model, if it is one; else null
  LabelTape* tape_;
};

}  // namespace

ChainSettings chain_settings(const Recipe& recipe, const Phase& phase) {
  const Algorithm& algorithm = *phase.algorithm;
  const bool variance =
      algorithm.needs == Needs::tilted && find_method(phase.inference.name).needs_variance;
  return {.client = recipe.client,
          .augment = recipe.data.augment,
          .pooled = algorithm.pools_epochs,
          .averages = algorithm.averages_in_epoch || phase.inference.average_within_epoch,
          .keeps_variance = variance,
          .langevin = phase.inference.langevin,
          .rate = phase.client_rate,
          .visit_rate = phase.schedule.visit_rate,
          .scheduled = phase.schedule.visit_rate || phase.schedule.client_rate,
          .label_sampler = phase.inference.label_sampler};
}

std::unique_ptr<LocalInference> make_local_learning(const Dataset& data, const Population& clients,
                                                    const Recipe& recipe,
                                                    std::unique_ptr<Model> model) {
  return std::make_unique<LocalLearning>(data, clients, recipe, std::move(model), nullptr);
}

std::unique_ptr<LocalInference> make_recorded_learning(const Dataset& data,
                                                       const Population& clients,
                                                       const Recipe& recipe,
                                                       std::unique_ptr<Model> model,
                                                       LabelTape& tape) {
  return std::make_unique<LocalLearning>(data, clients, recipe, std::move(model), &tape);
}

}  // namespace fedep
