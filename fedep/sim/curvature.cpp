#include "fedep/sim/curvature.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/message/check.h"
#include "fedep/model/registry.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/rows/client_curvature.h"
#include "fedep/sim/rows/client_rows.h"

namespace fedep {
namespace {

std::string curvature_problem(const Recipe& recipe, const Task& task, const PhaseSettings& phase) {
  if (&phase != &recipe.phases.back()) return "the phase is not the last one";
  if (find_algorithm(phase.algorithm).point_estimate) {
    return fmt::format("{} infers no posterior", phase.algorithm);
  }
  if (phase.inference && phase.inference->family == FamilyChoice::full) {
    return "the phase's family is full already; family = \"diagonal\" is not";
  }
  const Dataset* const data = task.data();
  if (data == nullptr) return fmt::format("data {} have no rows", recipe.data.name);
  if (!find_model(recipe.model.name).is_linear) {
    return fmt::format("model.name is {}, not linear", recipe.model.name);
  }
  if (data->info().sparse) return fmt::format("features of {} are sparse", recipe.data.name);
  const TargetKind target = data->info().target;
  if (!has_rows(target) && target != TargetKind::label) {
    return "the outcome is not yes or no, a number, a count or a class";
  }
  const std::size_t weights = size_of(task.layout());
  if (weights <= kMostWeightsOfAMatrix) return {};
  return fmt::format("the model has {} weights, more than {}", weights, kMostWeightsOfAMatrix);
}

Eigen::VectorXd in_double(const std::vector<float>& values) {
  Eigen::VectorXd out(Eigen::Index(values.size()));
  for (std::size_t i = 0; i < values.size(); ++i) out[Eigen::Index(i)] = double(values[i]);
  return out;
}

}  // namespace

bool has_curvature(const Recipe& recipe) {
  return !recipe.phases.empty() && recipe.phases.back().curvature == CurvatureChoice::full;
}

void check_curvature(const Recipe& recipe, const Task& task) {
  for (std::size_t i = 0; i < recipe.phases.size(); ++i) {
    if (recipe.phases[i].curvature == CurvatureChoice::none) continue;
    const std::string why = curvature_problem(recipe, task, recipe.phases[i]);
    if (why.empty()) continue;
    throw InputError(fmt::format("phase.{}.curvature: full cannot be had, because {}", i, why));
  }
}

std::optional<Curvature> play_curvature(const Recipe& recipe, const Task& task,
                                        const ServerState& state,
                                        const std::function<bool()>& stop) {
  const Dataset& data = *task.data();
  const Likelihood likelihood = make_model(recipe.model, data.info())->likelihood();
  const HostVector<float> mean = point_estimate(state);
  Curvature out{.round = state.round, .mean = {mean.begin(), mean.end()}};
  std::optional<CurvaturePart> sum = add_curvatures(
      data.clients().size(), mean.size(),
      [&](std::size_t client) {
        return curvature_of(data, client, likelihood, recipe.client.weight_decay, out.mean);
      },
      stop);
  if (!sum) return std::nullopt;
  out.sum = std::move(*sum);
  return out;
}

DenseGaussian<double> posterior_of(const Curvature& curvature, const Message& prior) {
  const Eigen::VectorXd mean = in_double(curvature.mean);
  check_same_size("posterior_of", "prior", prior.size(), curvature.mean.size());
  Eigen::MatrixXd lambda = in_double(prior).lambda;
  std::size_t at = 0;
  for (Eigen::Index i = 0; i < lambda.rows(); ++i) {
    for (Eigen::Index j = 0; j <= i; ++j) {
      lambda(i, j) += curvature.sum.hessian[at++];
      lambda(j, i) = lambda(i, j);
    }
  }
  return {lambda * mean, lambda};
}

double distance_to_mode(const Curvature& curvature, const Message& prior,
                        const DenseGaussian<double>& q) {
  const DenseGaussian<double> own = in_double(prior);
  const Eigen::VectorXd mean = in_double(curvature.mean);
  const Eigen::Map<const Eigen::VectorXd> likelihood(curvature.sum.gradient.data(),
                                                     Eigen::Index(curvature.sum.gradient.size()));
  const Eigen::VectorXd gradient = own.lambda * mean - own.eta + likelihood;
  const Eigen::MatrixXd sigma = covariance(q);
  const Eigen::VectorXd step = sigma * gradient;
  return step.cwiseAbs().cwiseQuotient(sigma.diagonal().cwiseSqrt()).maxCoeff();
}

}  // namespace fedep
