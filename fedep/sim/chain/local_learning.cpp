#include "fedep/sim/chain/local_learning.h"

#include "fedep/inference/infer_cohort.h"
#include "fedep/sim/chain/cpu_cohort.h"
#include "fedep/sim/chain/learning_parts.h"
#include "fedep/sim/rows/row_inference.h"

namespace fedep {
namespace {

class LocalLearning final : public LocalInference {
 public:
  LocalLearning(const Dataset& data, const ClientIndex& index, const Recipe& recipe,
                std::unique_ptr<Model> model, LabelTape* tape)
      : data_(data), index_(index), recipe_(recipe), model_(std::move(model)), tape_(tape) {}

  ClientRun infer(const Visit& visit, VisitNumbers& numbers) override {
    const Phase& phase = visit.round.phase;
    if (phase.family == Family::full) {
      return infer_on_rows(data_, index_.at(visit.client.key), visit, recipe_.client.weight_decay,
                           *model_, numbers);
    }
    ChainSettings settings = chain_settings(recipe_, phase);
    settings.tape = tape_;
    const auto cohort =
        make_cpu_cohort(*model_, {{data_, index_.at(visit.client.key), visit, settings}});
    std::vector<ClientRun> runs = infer_cohort(*cohort, *phase.algorithm, phase.inference);
    numbers.steps = cohort->steps(0);
    numbers.loss_sum = cohort->loss_sum(0);
    return std::move(runs[0]);
  }

 private:
  const Dataset& data_;
  const ClientIndex& index_;
  const Recipe& recipe_;
  std::unique_ptr<Model> model_;
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

std::unique_ptr<LocalInference> make_local_learning(const Dataset& data, const ClientIndex& index,
                                                    const Recipe& recipe,
                                                    std::unique_ptr<Model> model) {
  return std::make_unique<LocalLearning>(data, index, recipe, std::move(model), nullptr);
}

std::unique_ptr<LocalInference> make_recorded_learning(const Dataset& data,
                                                       const ClientIndex& index,
                                                       const Recipe& recipe,
                                                       std::unique_ptr<Model> model,
                                                       LabelTape& tape) {
  return std::make_unique<LocalLearning>(data, index, recipe, std::move(model), &tape);
}

}  // namespace fedep
