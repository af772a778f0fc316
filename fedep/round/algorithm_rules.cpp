#include "fedep/round/algorithm_rules.h"

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

class Refusal {
 public:
  Refusal(std::size_t phase, std::string_view algorithm) : phase_(phase), algorithm_(algorithm) {}

  [[noreturn]] void operator()(std::string_view key, std::string_view why) const {
    throw InputError(fmt::format("phase.{}.{} {}", phase_, key, why));
  }
  void unless(bool has, std::string_view key, bool given) const {
    if (given && !has) (*this)(key, fmt::format("is given, but {} has none", algorithm_));
  }

 private:
  std::size_t phase_;
  std::string_view algorithm_;
};

bool is_proximal(CavityKind kind) {
  return kind == CavityKind::proximal || kind == CavityKind::dual;
}

void check_cavity(const Refusal& refuse, const Algorithm& algorithm, CavityKind cavity) {
  const bool own = algorithm.cavity == cavity;
  if (is_proximal(algorithm.cavity) && !own) {
    refuse("cavity",
           fmt::format("must be the one that makes it {}, but is another", algorithm.title));
  }
  if (is_proximal(cavity) && !own) {
    refuse("cavity", "can be proximal with fed_prox and dual with fed_dyn alone");
  }
  if (algorithm.step == StepRule::admm && !own) {
    refuse("cavity",
           fmt::format("must be own_factor with {}, whose server has the factors' product",
                       algorithm.name));
  }
}

// What a phase's own optimizer, or the server's, or the factors' is.
void check_plain(const std::string& key, std::string_view algorithm,
                 const OptimizerSettings& optimizer) {
  if (optimizer.name == "sgd" && optimizer.lr == 1 && optimizer.momentum == 0) return;
  throw InputError(
      fmt::format("{} must be sgd with lr 1 and no momentum, since {} has no optimizer, but is {} "
                  "with lr {} and "
                  "momentum {}; shorter steps are damping's or a schedule's",
                  key, algorithm, optimizer.name, optimizer.lr, optimizer.momentum));
}

void check_optimizers(const Recipe& recipe, std::size_t index, std::string_view algorithm) {
  if (const auto& own = recipe.phases[index].optimizer) {
    return check_plain(fmt::format("phase.{}.optimizer", index), algorithm, *own);
  }
  check_plain("server.optimizer", algorithm, recipe.server.optimizer);
  if (const auto& factors = recipe.server.factor_optimizer) {
    check_plain("server.factor_optimizer", algorithm, *factors);
  }
}

void check_method(const Refusal& refuse, const Algorithm& algorithm, std::string_view name) {
  if (algorithm.methods[0].empty()) return;
  if (std::ranges::find(algorithm.methods, name) != algorithm.methods.end() && !name.empty())
    return;
  const std::string known =
      algorithm.methods[1].empty()
          ? std::string(algorithm.methods[0])
          : fmt::format("{} or {}", algorithm.methods[0], algorithm.methods[1]);
  refuse("inference.name", fmt::format("must be {} with {}, but is {}", known, algorithm.name,
                                       name.empty() ? "missing" : name));
}

}  // namespace

bool has_own_damping(const Algorithm& algorithm) { return algorithm.step == StepRule::admm; }

void check_algorithm(const Recipe& recipe, std::size_t index) {
  const PhaseSettings& phase = recipe.phases[index];
  const Algorithm& algorithm = find_algorithm(phase.algorithm);
  const Refusal refuse(index, algorithm.name);
  const bool admm = algorithm.step == StepRule::admm;
  check_cavity(refuse, algorithm, phase.cavity.value_or(algorithm.cavity));
  if (is_proximal(algorithm.cavity) && !phase.mu) {
    refuse("mu", fmt::format("is missing: {} needs one", algorithm.name));
  }
  refuse.unless(is_proximal(algorithm.cavity), "mu", phase.mu.has_value());
  refuse.unless(admm && !algorithm.point_estimate, "penalty", phase.penalty.has_value());
  refuse.unless(admm, "dual_rate", phase.dual_rate.has_value());
  refuse.unless(!algorithm.point_estimate, "temperature", phase.temperature.has_value());
  if (algorithm.cavity == CavityKind::dual && !(*phase.mu > 0)) {
    refuse("mu", "must be positive with fed_dyn, whose clients would not know of one another");
  }
  if (admm) {
    refuse.unless(false, "damping", phase.damping.has_value());
    refuse.unless(false, "damping_outside", phase.damping_outside.value_or(false));
    if (phase.weight.value_or(algorithm.weight) != algorithm.weight) {
      refuse("weight", fmt::format("must be equal with {}, but is examples", algorithm.name));
    }
  }
  if (algorithm.plain_steps) check_optimizers(recipe, index, algorithm.name);
  if (algorithm.needs_prior && !recipe.server.prior) {
    throw InputError(fmt::format(
        "server.prior is flat, but {} needs one: prior = {{ precision = … }}", algorithm.name));
  }
  check_method(refuse, algorithm, phase.inference ? std::string_view(phase.inference->name) : "");
}

void apply_algorithm(const PhaseSettings& settings, Phase& phase) {
  phase.mu = settings.mu.value_or(0);
  phase.penalty = settings.penalty.value_or(1);
  phase.temperature = settings.temperature.value_or(1);
  if (!phase.algorithm->infers_precision) phase.alpha = 0;
  if (has_own_damping(*phase.algorithm)) {
    phase.damping = {.rule = DampingRule::constant,
                     .constant = settings.dual_rate.value_or(1) * phase.penalty};
  }
}

}  // namespace fedep
