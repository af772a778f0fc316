// Every setting, listed once: its key, its member, what it may be. Reading, writing and checking
// are visitors of these lists, so a setting that is added here is read, written, checked, suggested
// and overridable.
//
//   struct Names {                                            a visitor
//     template <class T, class... Rest> void operator()(std::string_view key, T&, Rest&&...) { … }
//   };
//   list_fields(names, recipe.client);
//
// An optional section is followed by the value it starts from, where only some of its keys are
// given.
#pragma once

#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/config/rule.h"

namespace fedep {

template <class Fields>
void list_fields(Fields& f, OptimizerSettings& s) {
  f("name", s.name);
  f("lr", s.lr, positive_square());
  f("momentum", s.momentum, fraction_below_one());
  f("beta1", s.beta1, fraction_below_one());
  f("beta2", s.beta2, fraction_below_one());
  f("epsilon", s.epsilon, not_negative());
  f("epsilon_inside_root", s.epsilon_inside_root);
  f("initial_accumulator", s.initial_accumulator, not_negative_square());
}

template <class Fields>
void list_fields(Fields& f, DataSettings& s) {
  f("name", s.name, needed());
  f("path", s.path);
  f("partition", s.partition);
  f("augment", s.augment);
  f("clients", s.clients, at_least(1));
  f("dimension", s.dimension, at_least(1));
  f("examples", s.examples, at_least(1));
  f("tags", s.tags, at_least(1));
  f("alpha", s.alpha, between(0, 1e5));
  f("beta", s.beta, between(0, 1e5));
  f("concentration", s.concentration, positive());
  f("partition_seed", s.partition_seed, at_least(0));
  f("keep_clients", s.keep_clients, at_least(0));
  f("min_examples", s.min_examples, at_least(0));
  f("max_examples", s.max_examples, at_least(0));
  f("test_fraction", s.test_fraction, fraction_below_one());
  f("validation_fraction", s.validation_fraction, fraction_below_one());
  f("calibration_fraction", s.calibration_fraction, fraction_below_one());
  f("unseen_classes", s.unseen_classes, at_least(0));
  f("client_column", s.client_column);
  f("label_column", s.label_column);
  f("label", s.label);
  f("label_positive", s.label_positive);
  f("label_negative", s.label_negative);
  f("features", s.features);
  f("categories", s.categories);
  f("missing", s.missing);
  f("reference", s.reference);
  f("interactions", s.interactions);
  f("missing_indicators", s.missing_indicators);
  f("test_column", s.test_column);
  f("exposure_column", s.exposure_column);
  f("start_column", s.start_column);
  f("stop_column", s.stop_column);
  f("intervals", s.intervals, between(1, 1000));
  f("drop", s.drop);
  f("id_column", s.id_column);
  f("group_column", s.group_column);
  f("scale", s.scale);
}

// The key model.noise: a number, or "estimated".
struct NoiseKey {
  double& deviation;
  bool& estimated;
};
inline constexpr std::string_view kEstimated = "estimated";

template <class Fields>
void list_fields(Fields& f, ModelSettings& s) {
  f("name", s.name);
  f("norm", s.norm);
  f("initial_scale", s.initial_scale, between(0, 1e5));
  NoiseKey noise{s.noise, s.estimate_noise};
  f("noise", noise, positive());
  f("site_intercept", s.site_intercept);
  f("path", s.path);
}

template <class Fields>
void list_fields(Fields& f, ClientSettings& s) {
  f("epochs", s.epochs, at_least(1));
  f("batch", s.batch, at_least(1));
  f("remainder", s.remainder);
  f("weight_decay", s.weight_decay, not_negative_square());
  f("loss_times_batch", s.loss_times_batch);
  f("optimizer", s.optimizer);
}

template <class Fields>
void list_fields(Fields& f, PriorSettings& s) {
  f("mean", s.mean, between(-kLargest, kLargest));
  f("precision", s.precision, positive_square());
}

template <class Fields>
void list_fields(Fields& f, ServerSettings& s) {
  f("clients_per_round", s.clients_per_round, at_least(1));
  f("prior", s.prior);
  f("damping", s.damping, positive());
  f("damping_outside", s.damping.outside);
  f("grid_bits", s.grid_bits, one_of(64, 32));
  f("optimizer", s.optimizer);
  f("factor_optimizer", s.factor_optimizer, s.optimizer);
}

template <class Fields>
void list_fields(Fields& f, InferenceSettings& s) {
  f("name", s.name);
  f("family", s.family);
  f("alpha", s.alpha, positive_square());
  f("scale", s.scale, positive());
  f("initial_scale", s.initial_scale, not_negative_square());
  f("shrinkage", s.shrinkage, fraction());
  f("epochs", s.epochs, at_least(1));
  f("samples", s.samples, at_least(1));
  f("decay", s.decay, fraction_below_one());
  f("clip_std", s.clip_std, not_negative());
  f("rescale", s.rescale);
  f("unbiased", s.unbiased);
  f("average_within_epoch", s.average_within_epoch);
  f("langevin", s.langevin);
  f("rho", s.rho, not_negative());
  f("mixin_epochs", s.mixin_epochs, at_least(0));
  f("label_sampler", s.label_sampler);
}

template <class Fields>
void list_fields(Fields& f, CooldownSettings& s) {
  f("after", s.after, needed(at_least(0)));
  f("rounds", s.rounds, needed(at_least(1)));
  f("to", s.to, fraction());
}

template <class Fields>
void list_fields(Fields& f, VisitSchedule& s) {
  f("kind", s.kind);
  f("from", s.from, positive());
  f("to", s.to, positive());
  f("steps", s.steps, at_least(1));
}

template <class Fields>
void list_fields(Fields& f, RoundSchedule& s) {
  f("kind", s.kind);
  f("after", s.after, at_least(0));
  f("rounds", s.rounds, at_least(0));
  f("from", s.from, not_negative());
  f("to", s.to, not_negative());
  f("steps", s.steps, at_least(1));
}

template <class Fields>
void list_fields(Fields& f, ScheduleSettings& s) {
  f("visit_rate", s.visit_rate, VisitSchedule{});
  f("client_rate", s.client_rate, RoundSchedule{});
  f("server_rate", s.server_rate, RoundSchedule{});
  f("clip", s.clip, RoundSchedule{});
  f("alpha", s.alpha, RoundSchedule{});
}

template <class Fields>
void list_fields(Fields& f, AverageSettings& s) {
  f("kind", s.kind);
  f("rounds", s.rounds, at_least(1));
}

template <class Fields>
void list_fields(Fields& f, PhaseSettings& s) {
  f("algorithm", s.algorithm, needed(known_algorithm()));
  f("rounds", s.rounds, needed(at_least(1)));
  f("cavity", s.cavity);
  f("share", s.share);
  f("mu", s.mu, not_negative_square());
  f("penalty", s.penalty, positive());
  f("dual_rate", s.dual_rate, positive());
  f("temperature", s.temperature, positive());
  f("weight", s.weight);
  f("damping", s.damping, positive());
  f("damping_outside", s.damping_outside);
  f("clip", s.clip, not_negative_square());
  f("guard", s.guard.mode);
  f("guard_floor", s.guard.floor, positive_square());
  f("factors", s.factors);
  f("factor_clock", s.factor_clock);
  f("optimizer_state", s.optimizer_state);
  f("optimizer", s.optimizer, OptimizerSettings{});
  f("hand_over", s.hand_over);
  f("cooldown", s.cooldown, CooldownSettings{});
  f("schedule", s.schedule, ScheduleSettings{});
  f("average", s.average, AverageSettings{});
  f("curvature", s.curvature);
  f("inference", s.inference, InferenceSettings{});
}

template <class Fields>
void list_fields(Fields& f, EvaluateSettings& s) {
  f("every", s.every, at_least(0));
  f("samples", s.samples, at_least(0));
  f("marginal_every", s.marginal_every, at_least(0));
  f("examples", s.examples, at_least(0));
  f("calibrated_every", s.calibrated_every, at_least(0));
}

template <class Fields>
void list_fields(Fields& f, CheckpointSettings& s) {
  f("every", s.every, at_least(0));
  f("keep", s.keep, at_least(1));
  f("sites", s.sites);
  f("factors", s.factors);
  f("sparse", s.sparse);
}

// Whoever moves further has not converged (store/verdict.h), and ends no run.
template <class Fields>
void list_fields(Fields& f, StopSettings& s) {
  f("converged", s.converged, between(0, 0.05));
}

template <class Fields>
void list_fields(Fields& f, CoefficientPrior& s) {
  f("coefficient", s.coefficient, needed());
  f("mean", s.mean, between(-kLargest, kLargest));
  f("precision", s.precision, positive_square());
}

template <class Fields>
void list_fields(Fields& f, Recipe& s) {
  f("table", s.table);
  f("row", s.row);
  f("seed", s.seed, at_least(0));
  f("data", s.data);
  f("model", s.model);
  f("client", s.client);
  f("server", s.server);
  f("prior", s.priors);
  f("phase", s.phases);
  f("evaluate", s.evaluate);
  f("checkpoint", s.checkpoint);
  f("stop", s.stop);
}

// The keys of a section, in order.
struct FieldNames {
  std::vector<std::string_view> names;

  template <class T, class... Rest>
  void operator()(std::string_view name, T&, Rest&&...) {
    names.push_back(name);
  }
};

template <class S>
concept Section = requires(FieldNames names, S section) {
  list_fields(names, section);
};

template <Section S>
std::vector<std::string_view> names_of() {
  FieldNames names;
  S section;
  list_fields(names, section);
  return names.names;
}

}  // namespace fedep
