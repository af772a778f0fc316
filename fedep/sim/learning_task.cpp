#include "fedep/sim/learning_task.h"

#include "fedep/data/registry.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/validation.h"
#include "fedep/inference/method.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/evaluation.h"
#include "fedep/sim/process.h"

namespace fedep {
namespace {

void check_phase(const PhaseSettings& phase, int epochs, TargetKind target) {
  const Algorithm& algorithm = find_algorithm(phase.algorithm);
  const InferenceSettings inference = phase.inference.value_or(InferenceSettings{});
  if (algorithm.needs == Needs::samples) check_samples(inference, epochs);
  const bool several_outputs = target == TargetKind::label || target == TargetKind::tags;
  if (inference.label_sampler == LabelSampler::softmax_index && !several_outputs) {
    throw InputError(
        "phase.inference.label_sampler must be model where there are no classes or tags, but is "
        "softmax_index");
  }
  // A missing name is refused where phases are planned.
  if (!algorithm.point_estimate && !inference.name.empty()) check_inference(inference, epochs);
}

class LearningTask final : public Task {
 public:
  LearningTask(const Recipe& recipe, std::unique_ptr<Dataset> data)
      : recipe_(recipe),
        data_(std::move(data)),
        model_(make_model(recipe.model, data_->info())),
        population_(make_population(data_->clients())),
        evaluation_(*data_, make_model(recipe.model, data_->info())) {
    for (std::size_t i = 0; i < population_.size(); ++i) index_[population_[i].key] = i;
    check_learning(recipe, data_->info().target);
  }

  const Population& population() const override { return population_; }
  const Layout& layout() const override { return model_->layout(); }
  HostVector<float> initial_weights() const override {
    HostVector<float> theta(model_->size());
    model_->initialise(recipe_.seed, theta.span());
    return theta;
  }
  Family family_of(std::string_view inference) const override {
    return find_method(inference).family;
  }
  std::unique_ptr<LocalInference> make_inference() const override {
    return make_local_learning(*data_, index_, recipe_, make_model(recipe_.model, data_->info()));
  }

  std::string features() const override {
    return data_->info().table ? to_json(*data_->info().table) : std::string();
  }

  Metrics evaluate(const ServerState& state, bool last) override {
    const EvaluateSettings& settings = recipe_.evaluate;
    const Subsample which{
        .seed = recipe_.seed, .round = state.round, .examples = std::size_t(settings.examples)};
    Metrics metrics = evaluation_.at(point_estimate(state), which);
    reliability_ = {.point = evaluation_.reliability(), .marginal = {}};
    if (is_marginal_due(recipe_, state, last) && is_proper(state.global)) {
      const Metrics marginal = evaluation_.marginal(state.global, {.seed = recipe_.seed,
                                                                   .round = state.round,
                                                                   .samples = settings.samples,
                                                                   .examples = which.examples});
      metrics.insert(metrics.end(), marginal.begin(), marginal.end());
      reliability_.marginal = evaluation_.reliability();
    }
    return metrics;
  }
  Reliability reliability() const override { return reliability_; }
  const Dataset* data() const override { return data_.get(); }

 private:
  Recipe recipe_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Model> model_;  // for its layout and first weights
  Population population_;
  ClientIndex index_;
  Evaluation evaluation_;
  Reliability reliability_;  // of the latest evaluate()
};

}  // namespace

std::unique_ptr<Dataset> open_task_data(const Recipe& recipe,
                                        const std::filesystem::path& data_folder) {
  std::unique_ptr<Dataset> data = open_dataset(recipe.data, recipe.seed, data_folder);
  const double part = recipe.data.validation_fraction;
  return part > 0 ? validation_dataset(std::move(data), part) : std::move(data);
}

void check_learning(const Recipe& recipe, TargetKind target) {
  check_chain({.client = recipe.client});
  for (const PhaseSettings& phase : recipe.phases) {
    check_phase(phase, recipe.client.epochs, target);
  }
}

std::unique_ptr<Task> make_learning_task(const Recipe& recipe,
                                         const std::filesystem::path& data_folder) {
  check_process_is_prepared();
  return std::make_unique<LearningTask>(recipe, open_task_data(recipe, data_folder));
}

}  // namespace fedep
