#include "test/site_study.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/config/resolve.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/random/poisson.h"
#include "fedep/random/stream.h"
#include "fedep/round/run.h"
#include "fedep/round/site_store.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/place/places.h"

namespace fedep {
namespace {

void add_row(const SiteDesign& design, const std::vector<double>& weights, double intercept,
             Stream& stream, Batch& rows) {
  const double shared = std::sqrt(design.correlation) * stream.normal();
  double f = intercept;
  for (const double weight : weights) {
    const double x = shared + std::sqrt(1 - design.correlation) * stream.normal();
    rows.dense.push_back(float(x));
    f += weight * x;
  }
  ++rows.size;
  if (design.outcome == TargetKind::binary) {
    rows.labels.push_back(stream.uniform() < 1 / (1 + std::exp(-f)) ? 1 : 0);
  } else if (design.outcome == TargetKind::count) {
    rows.reals.push_back(float(draw_poisson(stream, std::exp(f))));
  } else {
    rows.reals.push_back(float(f + design.noise * stream.normal()));
  }
}

}  // namespace

std::unique_ptr<Dataset> draw_sites(const SiteDesign& design) {
  Stream stream({.seed = design.seed, .purpose = Purpose::test});
  std::vector<double> weights(design.columns);
  for (double& weight : weights) weight = 0.5 * stream.normal();
  const double mean = 0.3 * stream.normal();
  Batch train, test;
  ClientRows trained, held_out;
  for (std::size_t k = 0; k < design.sites.size(); ++k) {
    const double own = mean + (design.intercepts ? design.site_sd * stream.normal() : 0);
    for (std::size_t i = 0; i < design.sites[k]; ++i) {
      add_row(design, weights, own, stream, train);
    }
    for (std::size_t i = 0; i < design.held_out; ++i) add_row(design, weights, own, stream, test);
    trained.add(fmt::format("h{}", k), design.sites[k]);
    if (design.held_out > 0) held_out.add(fmt::format("h{}", k), design.held_out);
  }
  DatasetInfo info{.name = "made up",
                   .features = {std::int64_t(design.columns)},
                   .target = design.outcome,
                   .outputs = 1,
                   .feature_names = {},
                   .output_names = {}};
  return memory_dataset(std::move(info), {std::move(trained), batch_rows(std::move(train))},
                        {std::move(held_out), batch_rows(std::move(test))});
}

Recipe recipe_of(const SiteDesign& design, const std::string& algorithm, int rounds) {
  Recipe recipe;
  recipe.data.name = "regression";  // never opened
  recipe.model = {.noise = design.noise,
                  .estimate_noise = design.estimates_noise,
                  .site_intercept = design.intercepts};
  recipe.server.clients_per_round = int(design.sites.size());
  recipe.server.prior = PriorSettings{.mean = 0, .precision = 1};
  recipe.server.damping = {.rule = DampingRule::constant, .constant = 0.5};
  recipe.phases = {{.algorithm = algorithm, .rounds = rounds, .factors = FactorStart::flat}};
  recipe.evaluate = {.every = 0};
  return resolved(recipe);
}

void Gap::note(double by, double ratio) {
  distance = std::max(distance, by);
  least_ratio = std::min(least_ratio, ratio);
  largest_ratio = std::max(largest_ratio, ratio);
}

ServerState play_in_memory(const Recipe& given, Task& task) {
  const Recipe recipe = decide_families(given, task).recipe;
  const std::vector<Phase> phases =
      plan_phases(recipe, [&](std::string_view name) { return task.family_of(name); });
  const std::unique_ptr<SiteStore> sites = make_memory_store();
  const std::unique_ptr<Place> place = find_place("cpu", 1).make(recipe, task, *sites, {});
  return play_run({recipe, phases, task.population(), task.layout(), *place, task.priors()},
                  task.initial_weights())
      .state;
}

SiteComparison compare(const SiteDesign& design, const std::string& algorithm, int rounds,
                       const SamplerSettings& sampler) {
  const Recipe given = recipe_of(design, algorithm, rounds);
  const std::unique_ptr<Task> task = make_learning_task(given, draw_sites(design));
  const auto start = std::chrono::steady_clock::now();
  const Message q = play_in_memory(given, *task).global;
  SiteComparison out;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  const PooledPosterior exact =
      sample_hierarchy(pooled_rows(*task->data(), design.noise),
                       {.intercepts = design.intercepts, .noise = design.estimates_noise}, sampler)
          .shared;
  out.rhat = exact.worst_rhat;
  out.effective = exact.least_effective_draws;
  const HostVector<float> means = mean(q), variances = variance(q);
  const auto note = [&](Gap& gap, std::size_t i) {
    const double sd = exact.deviation[Eigen::Index(i)];
    gap.note(std::abs(double(means[i]) - exact.mean[Eigen::Index(i)]) / sd,
             std::sqrt(double(variances[i])) / sd);
  };
  std::size_t at = 0;
  for (; at < design.columns; ++at) note(out.weights, at);
  note(out.intercept, at++);
  if (design.intercepts) {
    out.pooled_log_site_sd = exact.mean[Eigen::Index(at)];
    out.pooled_log_site_sd_deviation = exact.deviation[Eigen::Index(at)];
    note(out.log_site_sd.emplace(), at++);
  }
  if (design.estimates_noise) note(out.log_noise.emplace(), at);
  return out;
}

}  // namespace fedep
