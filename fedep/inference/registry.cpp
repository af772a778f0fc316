#include <array>

#include "fedep/inference/method.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::array kMethods{
    Method{"scaled_identity", "precision set to alpha per example, nothing estimated",
           MethodKind::scaled_identity, Family::isotropic, "I"},
    Method{"sample_moments", "variances of the chain's samples, shrunk", MethodKind::sample_moments,
           Family::diagonal, "M"},
    Method{"laplace", "diagonal Fisher information at the chain's mean", MethodKind::laplace,
           Family::diagonal, "L"},
    Method{"ngvi", "natural-gradient variational inference of the precision", MethodKind::ngvi,
           Family::diagonal, "V"},
};

}  // namespace

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Method& method : kMethods) {
    if (method.name == name) return method;
    names.push_back(method.name);
  }
  throw InputError(unknown_name("inference method", name, names));
}

void check_inference(const InferenceSettings& settings, int chain_epochs) {
  const Method& method = find_method(settings.name);
  if (method.kind == MethodKind::sample_moments && chain_epochs < 2) {
    fail("phase.inference", "client.epochs with sample_moments", "at least 2",
         fmt::format("{}", chain_epochs));
  }
  if (method.kind == MethodKind::sample_moments && settings.shrinkage == 0 && !settings.langevin) {
    throw InputError(
        "phase.inference: sample_moments needs shrinkage or langevin: variances of noiseless SGD "
        "vanish where it has converged");
  }
  // Draws of a step are told apart by so many bits of their addresses.
  if (method.kind == MethodKind::ngvi && settings.samples > 127) {
    fail("phase.inference", "samples", "at most 127", fmt::format("{}", settings.samples));
  }
}

void check_samples(const InferenceSettings& settings, int chain_epochs) {
  if (chain_epochs > settings.mixin_epochs) return;
  fail("phase.inference", "client.epochs with posterior samples",
       fmt::format("greater than mixin_epochs ({})", settings.mixin_epochs),
       fmt::format("{}", chain_epochs));
}

}  // namespace fedep
