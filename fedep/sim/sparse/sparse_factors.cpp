#include "fedep/sim/sparse/sparse_factors.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "fedep/inference/method.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/sim/sparse/silent_rows.h"

namespace fedep {
namespace {

std::string method_reason(const Phase& phase, std::size_t index) {
  const std::string key = fmt::format("phase.{}.inference", index);
  const InferenceSettings& inference = phase.inference;
  const Method& method = find_method(inference.name);
  if (!method.keeps_cavity) {
    return fmt::format(
        "{}.name must be laplace, ngvi, map or scaled_identity, but is {}, which has a precision "
        "for "
        "every weight",
        key, method.name);
  }
  if (method.start_left != nullptr && inference.initial_scale > 0) {
    return fmt::format("{}.initial_scale must be 0, but is {}: every weight would begin with it",
                       key, inference.initial_scale);
  }
  if (inference.langevin) {
    return fmt::format("{}.langevin must be false, but is true: noise moves every weight", key);
  }
  return {};
}

// Of factors that refer to q's means: what of a visit would not be a share of them, and where there
// would be more means than factors.
std::string share_reason(const Recipe& recipe, const Phase& phase, std::size_t index,
                         std::size_t clients) {
  if (phase.cavity != CavityKind::own_factor || phase.likelihood_power() != 1 ||
      phase.penalty != 1) {
    return fmt::format(
        "phase.{}.algorithm must be fed_ep at temperature 1 where a method has one precision for "
        "all "
        "weights, but is {}",
        index, phase.algorithm->name);
  }
  if (phase.inference.langevin) {
    return fmt::format(
        "phase.{}.inference.langevin must be false, but is true: noise moves every weight", index);
  }
  if (phase.schedule.visit_rate) {
    return fmt::format("phase.{}.schedule.visit_rate must not be there: {}", index,
                       "weights without data must follow one law");
  }
  if (phase.guard.mode != GuardMode::count && phase.guard.mode != GuardMode::skip) {
    return fmt::format("phase.{}.guard must be count or skip, but is one that changes cavities",
                       index);
  }
  if (!recipe.checkpoint.factors) {
    return "checkpoint.factors must be true, but is false: means of q are kept with the factors";
  }
  if (std::size_t(phase.rounds) >= clients) {
    return fmt::format(
        "phase.{}.rounds must be fewer than the {} clients where a method has one precision for "
        "all "
        "weights, but are {}: one mean of q is kept for every round, which would take more room "
        "than "
        "a whole factor for every client",
        index, clients, phase.rounds);
  }
  return {};
}

std::string optimizer_reason(const Recipe& recipe, const Phase& phase, std::size_t index) {
  const OptimizerSettings& optimizer = phase.factor_optimizer;
  if (optimizer.name == "sgd" && optimizer.momentum == 0) return {};
  const std::string key = recipe.phases[index].optimizer ? fmt::format("phase.{}.optimizer", index)
                                                         : std::string("server.factor_optimizer");
  if (optimizer.name != "sgd") {
    return fmt::format(
        "{} must be sgd without momentum, but is {}, which has numbers of its own beside every "
        "weight: factor_optimizer = {{ name = \"sgd\", momentum = 0 }}",
        key, optimizer.name);
  }
  return fmt::format("{}.momentum must be 0, but is {}: a factor would have a second vector", key,
                     optimizer.momentum);
}

std::size_t average_touched(const Recipe& recipe, const Dataset& data) {
  constexpr std::size_t kLooked = 20;
  const std::unique_ptr<Model> model = make_model(recipe.model, data.info());
  const auto& sparse = dynamic_cast<const SparseLinear&>(*model);
  const std::size_t clients = data.clients().size(), looked = std::min(clients, kLooked);
  std::size_t silent = 0;
  for (std::size_t k = 0; k < looked; ++k) {
    for (const Range& range : silent_weights(sparse, data, k * clients / looked)) {
      silent += range.end - range.begin;
    }
  }
  return model->size() - silent / looked;
}

}  // namespace

void mark_shared_means(const Recipe& recipe, std::vector<Phase>& phases) {
  for (Phase& phase : phases) {
    phase.shares_means = recipe.checkpoint.sparse && phase.stateful() &&
                         !phase.algorithm->point_estimate && phase.family == Family::isotropic &&
                         !find_method(phase.inference.name).keeps_cavity;
  }
}

std::string dense_factor_reason(const Recipe& recipe, const Phase& phase, std::size_t index,
                                const Task& task) {
  const Dataset* const data = task.data();
  if (data == nullptr || !data->info().sparse || !find_model(recipe.model.name).is_linear) {
    return fmt::format(
        "data must have sparse features and a linear model, but are {} with {}: examples touch "
        "every weight",
        recipe.data.name, recipe.model.name);
  }
  if (phase.shares_means) {
    const std::string reason = share_reason(recipe, phase, index, task.population().size());
    return reason.empty() ? optimizer_reason(recipe, phase, index) : reason;
  }
  if (!phase.algorithm->point_estimate) {
    if (phase.factors != FactorStart::flat) {
      return fmt::format(
          "phase.{}.factors must be flat, but is carry_mean, which begins with a precision for "
          "every weight; flat factors need a server.prior",
          index);
    }
    if (std::string reason = method_reason(phase, index); !reason.empty()) return reason;
  }
  if (recipe.client.weight_decay > 0) {
    return fmt::format(
        "client.weight_decay must be 0, but is {}: it is a factor of every weight; server.prior "
        "holds all of them once",
        recipe.client.weight_decay);
  }
  return optimizer_reason(recipe, phase, index);
}

void check_sparse_factors(const Recipe& recipe, const std::vector<Phase>& phases,
                          const Task& task) {
  if (!recipe.checkpoint.sparse) return;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (!phases[i].stateful()) continue;
    const std::string reason = dense_factor_reason(recipe, phases[i], i, task);
    if (!reason.empty()) {
      throw InputError(fmt::format(
          "checkpoint.sparse asks for factors of the weights that a client's examples touch, and "
          "then {}",
          reason));
    }
  }
}

void refuse_sparse_factors(const Recipe& recipe, std::string_view device) {
  if (!recipe.checkpoint.sparse) return;
  throw InputError(
      fmt::format("checkpoint.sparse must be false where the device is {}, which keeps all numbers "
                  "of a factor, "
                  "but is true; --device cpu keeps those of its own rows",
                  device));
}

std::vector<std::size_t> weights_touched(const Recipe& recipe, const std::vector<Phase>& phases,
                                         const Task& task) {
  std::vector<std::size_t> touched;
  for (std::size_t i = 0; i < phases.size(); ++i) {
    if (!phases[i].stateful()) {
      touched.push_back(0);
    } else if (dense_factor_reason(recipe, phases[i], i, task).empty()) {
      touched.push_back(average_touched(recipe, *task.data()));
    } else {
      touched.push_back(size_of(task.layout()));
    }
  }
  return touched;
}

}  // namespace fedep
