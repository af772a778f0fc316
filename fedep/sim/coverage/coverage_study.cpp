#include "fedep/sim/coverage/coverage_study.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/data/table/table_features.h"
#include "fedep/inference/method.h"
#include "fedep/message/check.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/model/registry.h"
#include "fedep/random/stream.h"
#include "fedep/round/run.h"
#include "fedep/round/site_store.h"
#include "fedep/sim/coefficient_prior.h"
#include "fedep/sim/coverage/drawn_outcomes.h"
#include "fedep/sim/curvature.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/rows/client_rows.h"
#include "fedep/sim/rows/site_model.h"

namespace fedep {
namespace {

// What a replicate's run does without: scores, of which there are none.
Recipe without_scores(Recipe recipe) {
  recipe.evaluate = {.every = 0};
  return recipe;
}

std::uint64_t seed_of(const Recipe& recipe, std::size_t replicate) {
  Stream stream(
      {.seed = recipe.seed, .purpose = Purpose::simulation, .round = std::uint32_t(replicate + 1)});
  return stream.bits64() >> 1;  // recipes' seeds are below 2^63
}

struct Moments {
  std::vector<double> mean, variance;
};

Moments moments_of(const Message& q) {
  if (!is_proper(q)) throw RunError("the posterior is improper");
  const HostVector<float> means = mean(q), variances = variance(q);
  return {{means.span().begin(), means.span().end()},
          {variances.span().begin(), variances.span().end()}};
}

Moments moments_of(const Curvature& curvature, const Message& prior) {
  const DenseGaussian<double> q = posterior_of(curvature, prior);
  if (!is_proper(q)) throw RunError("the curvature at the mean is not positive definite");
  const Eigen::VectorXd variances = covariance(q).diagonal();
  return {{curvature.mean.begin(), curvature.mean.end()}, {variances.begin(), variances.end()}};
}

// After the last round of a run in memory, and its last round of curvature where it has one.
Moments run_moments(const Recipe& given, std::unique_ptr<Dataset> data, double outcome_deviation) {
  const std::unique_ptr<Task> task =
      make_learning_task(given, std::move(data), {.outcome_deviation = outcome_deviation});
  const Recipe recipe = decide_families(given, *task).recipe;
  const std::vector<Phase> phases =
      plan_phases(recipe, [&](std::string_view name) { return task->family_of(name); });
  const std::unique_ptr<SiteStore> sites = make_memory_store();
  const std::unique_ptr<Place> place = find_place("cpu", 1).make(recipe, *task, *sites, {});
  const ServerState state =
      play_run({recipe, phases, task->population(), task->layout(), *place, task->priors()},
               task->initial_weights())
          .state;
  if (!has_curvature(recipe)) return moments_of(state.global);
  return moments_of(play_curvature(recipe, *task, state).value(), state.prior);
}

std::size_t rank_among_draws(const KnownTruth& known, Stream& stream) {
  std::size_t below = 0;
  for (std::size_t i = 0; i < kRankDraws; ++i) {
    if (known.mean + known.deviation * stream.normal() < known.truth) ++below;
  }
  return below;
}

// By column; the intercept always has one.
std::vector<bool> has_coefficient(const DatasetInfo& info) {
  std::vector<bool> out(info.feature_count() + 1, true);
  if (info.table == nullptr) return out;
  for (const std::size_t constant : constant_columns(*info.table).features) out[constant] = false;
  return out;
}

std::vector<std::string> names_of(const DatasetInfo& info) {
  std::vector<std::string> names = info.feature_names;
  while (names.size() < info.feature_count()) names.push_back(fmt::format("x{}", names.size() + 1));
  names.emplace_back("intercept");
  return names;
}

class Study {
 public:
  Study(const Recipe& recipe, const Dataset& rows, std::optional<double> truth_precision)
      : recipe_(without_scores(recipe)),
        rows_(rows),
        likelihood_(make_model(recipe.model, rows.info())->likelihood()),
        extras_(extras_of(make_model(recipe.model, rows.info())->layout())),
        truths_(recipe.server.prior.value()),
        own_truths_(coefficient_priors(recipe, rows.info())),
        used_(has_coefficient(rows.info())) {
    if (truth_precision) {
      truths_.precision = *truth_precision;
      for (CoordinatePrior& own : own_truths_) own.precision = *truth_precision;
    }
    if (needs_deviation(extras_, likelihood_.target))
      outcome_deviation_ = outcome_moments(rows).deviation;
    extra_priors_ = extra_priors(extras_, likelihood_.target, outcome_deviation_);
    used_.resize(used_.size() + extra_priors_.size(), true);
  }

  Replicate play(std::size_t number) const {
    Recipe recipe = recipe_;
    recipe.seed = seed_of(recipe_, number);
    const std::size_t weights = used_.size() - extra_priors_.size();
    std::vector<double> truth = draw_truth(truths_, weights, recipe.seed, own_truths_);
    Stream of_extras({.seed = recipe.seed, .purpose = Purpose::simulation, .step = 2});
    for (const CoordinatePrior& prior : extra_priors_) {
      truth.push_back(prior.mean + of_extras.normal() / std::sqrt(prior.precision));
    }
    const auto drawn = [&](const std::optional<std::size_t>& at, double otherwise) {
      return at ? std::exp(truth[*at]) : otherwise;
    };
    const Likelihood likelihood(likelihood_.target, drawn(extras_.log_noise, likelihood_.noise));
    const Moments q = run_moments(recipe,
                                  draw_outcomes(rows_, std::span(truth).first(weights), likelihood,
                                                recipe.seed, drawn(extras_.log_site_sd, 0)),
                                  outcome_deviation_);
    Stream stream({.seed = recipe.seed, .purpose = Purpose::simulation, .step = 1});
    Replicate out;
    for (std::size_t j = 0; j < truth.size(); ++j) {
      if (!used_[j]) continue;
      KnownTruth& known = out.emplace_back(
          KnownTruth{.truth = truth[j], .mean = q.mean[j], .deviation = std::sqrt(q.variance[j])});
      known.rank = rank_among_draws(known, stream);
    }
    return out;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all = names_of(rows_.info());
    if (extras_.log_site_sd) all.emplace_back(kLogSiteSd);
    if (extras_.log_noise) all.emplace_back(kLogNoise);
    std::vector<std::string> out;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if (used_[j]) out.push_back(all[j]);
    }
    return out;
  }

 private:
  Recipe recipe_;
  const Dataset& rows_;
  Likelihood likelihood_;
  SharedExtras extras_;
  PriorSettings truths_;                       // what weights are drawn from,
  std::vector<CoordinatePrior> own_truths_;    // and those that have priors of their own
  double outcome_deviation_ = 0;               // of the rows' own outcomes,
  std::vector<CoordinatePrior> extra_priors_;  // by which log τ and log σ are drawn
  std::vector<bool> used_;
};

// Of one replicate: what came, or why nothing did.
struct Attempt {
  std::optional<Replicate> replicate = {};
  std::string failure = {};
};

Attempt try_replicate(const Study& study, std::size_t number) {
  try {
    return {.replicate = study.play(number)};
  } catch (const std::exception& error) {
    return {.failure = error.what()};
  }
}

void check_rows(const Recipe& recipe, const DatasetInfo& info) {
  const auto refuse = [](std::string_view why) {
    throw InputError(fmt::format("coverage: {}", why));
  };
  if (!find_model(recipe.model.name).is_linear) {
    refuse(fmt::format("model.name must be linear, whose coefficients can be drawn, but is {}",
                       recipe.model.name));
  }
  if (info.sparse || !has_rows(info.target)) {
    refuse(
        fmt::format("data must have dense columns and an outcome that is yes or no, a number or a "
                    "count, but {} have not",
                    info.name));
  }
}

}  // namespace

std::string coverage_problem(const Recipe& recipe) {
  if (!recipe.server.prior) {
    return "server.prior must be proper, so that truths can be drawn from it, but is flat";
  }
  if (recipe.phases.empty()) return "the recipe must have a phase, but has none";
  const Algorithm& last = find_algorithm(recipe.phases.back().algorithm);
  if (last.point_estimate) {
    return fmt::format(
        "the last phase must infer a posterior, whose intervals are tried, but {} has an estimate "
        "alone",
        last.name);
  }
  const std::string name = recipe.phases.back().inference.value_or(InferenceSettings{}).name;
  const auto method = std::ranges::find(methods(), name, &Method::name);
  if (!has_curvature(recipe) && method != methods().end() && method->family == Family::isotropic) {
    return fmt::format("{} sets its precision and infers no interval", name);
  }
  return {};
}

CoverageStudy run_coverage_study(const Recipe& recipe, const Dataset& rows,
                                 const CoverageOptions& options) {
  if (const std::string why = coverage_problem(recipe); !why.empty()) {
    throw InputError("coverage: " + why);
  }
  check_rows(recipe, rows.info());
  if (options.truth_precision) {
    check_positive("coverage", "precision of truths", *options.truth_precision);
  }
  const Study study(recipe, rows, options.truth_precision);
  std::vector<Attempt> attempts(options.replicates);
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;  // guards done and the call of options.done
  std::size_t done = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < attempts.size(); i = next++) {
      attempts[i] = try_replicate(study, i);
      const std::lock_guard lock(mutex);
      ++done;
      if (options.done) options.done(done);
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 1; t < options.threads; ++t) threads.emplace_back(work);
    work();
  }
  CoverageStudy out{.names = study.names()};
  for (Attempt& attempt : attempts) {
    if (attempt.replicate) {
      out.replicates.push_back(std::move(*attempt.replicate));
    } else if (++out.failed == 1) {
      out.first_failure = std::move(attempt.failure);
    }
  }
  return out;
}

}  // namespace fedep
