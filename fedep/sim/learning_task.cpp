#include "fedep/sim/learning_task.h"

#include <optional>

#include <fmt/format.h>

#include "fedep/data/calibration_rows.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/table_features.h"
#include "fedep/data/unseen_classes.h"
#include "fedep/data/validation.h"
#include "fedep/inference/method.h"
#include "fedep/inference/rows/row_method.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/chain/local_learning.h"
#include "fedep/sim/coefficient_prior.h"
#include "fedep/sim/process.h"
#include "fedep/sim/rows/site_model.h"
#include "fedep/sim/score/evaluation.h"
#include "fedep/sim/score/score_state.h"
#include "fedep/sim/score/tempered.h"

namespace fedep {
namespace {

void check_phase(const PhaseSettings& phase, const ClientSettings& client, TargetKind target) {
  const Algorithm& algorithm = find_algorithm(phase.algorithm);
  const InferenceSettings inference = phase.inference.value_or(InferenceSettings{});
  if (algorithm.needs == Needs::samples) check_samples(inference, client.epochs);
  const bool several_outputs = target == TargetKind::label || target == TargetKind::tags;
  if (inference.label_sampler == LabelSampler::softmax_index && !several_outputs) {
    throw InputError(
        "phase.inference.label_sampler must be model where there are no classes or tags, but is "
        "softmax_index");
  }
  // A missing name is refused, or found, where the family is decided (sim/family_choice.h).
  const bool by_chains = inference.family != FamilyChoice::full && !inference.name.empty() &&
                         !is_row_method_only(inference.name);
  if (algorithm.point_estimate || !by_chains) return;
  check_inference(inference, client.epochs);
  if (client.loss_times_batch && find_method(inference.name).own_chain) {
    throw InputError(fmt::format(
        "client.loss_times_batch must be false with {}, whose steps have their length from the "
        "curvature, but is true",
        inference.name));
  }
}

class LearningTask final : public Task {
 public:
  LearningTask(const Recipe& recipe, std::unique_ptr<Dataset> data, const TaskOptions& options)
      : recipe_(recipe),
        data_(std::move(data)),
        model_(make_model(recipe.model, data_->info())),
        population_(make_population(data_->clients())),
        evaluation_(*data_, make_model(recipe.model, data_->info())) {
    if (has_calibration_rows(*data_)) {
      calibration_.emplace(*data_->calibration(), make_model(recipe.model, data_->info()));
    }
    check_learning(recipe, data_->info().target);
    priors_ = coefficient_priors(recipe, data_->info());
    const SharedExtras extras = extras_of(model_->layout());
    if (extras.any()) {
      double deviation = options.outcome_deviation;
      const TargetKind target = data_->info().target;
      if (needs_deviation(extras, target) && !(deviation > 0)) {
        const OutcomeMoments outcome = outcome_moments(*data_);
        if (recipe.server.prior) check_outcome_prior(recipe, priors_, extras, outcome);
        deviation = outcome.deviation;
      }
      const auto more = extra_priors(extras, target, deviation);
      priors_.insert(priors_.end(), more.begin(), more.end());
    }
  }

  const Population& population() const override { return population_; }
  const Layout& layout() const override { return model_->layout(); }
  HostVector<float> initial_weights() const override {
    HostVector<float> theta(model_->size());
    model_->initialise(recipe_.seed, theta.span());
    // What is beside a model's own weights begins at its prior.
    const std::size_t weights = extras_of(model_->layout()).weights;
    for (const CoordinatePrior& prior : priors_) {
      if (prior.coordinate >= weights) theta[prior.coordinate] = float(prior.mean);
    }
    return theta;
  }
  std::vector<CoordinatePrior> priors() const override { return priors_; }
  Family family_of(std::string_view inference) const override {
    return is_row_method_only(inference) ? Family::full : find_method(inference).family;
  }
  std::unique_ptr<LocalInference> make_inference() const override {
    return make_local_learning(*data_, population_, recipe_,
                               make_model(recipe_.model, data_->info()));
  }

  std::string features() const override {
    return data_->info().table ? to_json(*data_->info().table) : std::string();
  }

  Metrics evaluate(const ServerState& state, bool last) override {
    return score(nullptr, state, last);
  }
  Metrics evaluate_over(Ranks& ranks, const ServerState& state, bool last) override {
    return score(&ranks, state, last);
  }
  Reliability reliability() const override { return scores_.reliability; }
  Temperatures temperatures() const override { return scores_.temperatures; }
  const Dataset* data() const override { return data_.get(); }

 private:
  Metrics score(Ranks* ranks, const ServerState& state, bool last) {
    evaluation_.share_among(ranks);
    if (calibration_) calibration_->share_among(ranks);
    const HostVector<float> point = point_estimate(state);
    const ServerAverage& average = state.average;
    const StateViewOf<HostVector<float>> view{
        .numbers = state,
        .global = state.global,
        .point = point,
        .average = average.rounds > 0 ? &average.mean : nullptr,
        .average_rounds = average.rounds,
        .around_average = [&] { return spread_around(average); }};
    scores_ =
        score_state(evaluation_, calibration_ ? &*calibration_ : nullptr, recipe_, view, last);
    return scores_.metrics;
  }

  Recipe recipe_;
  std::unique_ptr<Dataset> data_;
  std::unique_ptr<Model> model_;  // for its layout and first weights
  Population population_;
  std::vector<CoordinatePrior> priors_;
  Evaluation evaluation_;
  std::optional<Evaluation> calibration_;
  StateScores scores_;  // the latest
};

}  // namespace

std::unique_ptr<Dataset> open_task_data(const Recipe& recipe,
                                        const std::filesystem::path& data_folder) {
  std::unique_ptr<Dataset> data = open_dataset(recipe.data, recipe.seed, data_folder);
  const double validation = recipe.data.validation_fraction;
  const double calibration = recipe.data.calibration_fraction;
  if (validation + calibration >= 1) {
    throw InputError(fmt::format(
        "data.validation_fraction and data.calibration_fraction must leave examples to train on, "
        "but are {} and {}",
        validation, calibration));
  }
  if (validation > 0) data = validation_dataset(std::move(data), validation);
  // After it, so that unlike examples are held-out ones too; before what is fitted to examples alike.
  if (!recipe.data.unseen_classes.empty()) {
    data = without_classes(std::move(data), recipe.data.unseen_classes, recipe.data.min_examples);
  }
  if (calibration == 0) return data;
  if (!has_temperature(data->info().target)) {
    throw InputError(
        "data.calibration_fraction must be 0 where a number, a count or a time to event is "
        "predicted: a temperature is of probabilities");
  }
  // So large a part of those that are left.
  return without_calibration_rows(std::move(data), calibration / (1 - validation));
}

bool has_calibration_rows(const Dataset& data) {
  return data.calibration() != nullptr && data.calibration()->test_size() > 0;
}

void check_learning(const Recipe& recipe, TargetKind target) {
  check_chain({.client = recipe.client});
  check_site_model(recipe);
  for (const PhaseSettings& phase : recipe.phases) {
    check_phase(phase, recipe.client, target);
  }
}

std::unique_ptr<Task> make_learning_task(const Recipe& recipe,
                                         const std::filesystem::path& data_folder) {
  return make_learning_task(recipe, open_task_data(recipe, data_folder));
}

std::unique_ptr<Task> make_learning_task(const Recipe& recipe, std::unique_ptr<Dataset> data,
                                         const TaskOptions& options) {
  check_process_is_prepared();
  return std::make_unique<LearningTask>(recipe, std::move(data), options);
}

}  // namespace fedep
