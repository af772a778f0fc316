#include "fedep/page/report/curved_checkpoint.h"

#include <string_view>
#include <utility>
#include <vector>

#include "fedep/message/check.h"
#include "fedep/message/packed.h"

namespace fedep {
namespace {

// One for each weight: a checkpoint has one number, or tensors as its weights have them; none: flat. (The
// matrices of a full family need no curvature.)
std::vector<float> prior_precisions(const SafetensorsFile& checkpoint, std::size_t weights) {
  constexpr std::string_view kPrior = "prior.lambda";
  if (checkpoint.has(kPrior)) return std::vector(weights, checkpoint.get<float>(kPrior).at(0));
  std::vector<float> out;
  for (const Tensor& tensor : checkpoint.tensors) {
    if (!tensor.name.starts_with("prior.lambda.")) continue;
    const std::vector<float>& values = checkpoint.get<float>(tensor.name);
    out.insert(out.end(), values.begin(), values.end());
  }
  if (out.empty()) out.resize(weights);
  check_same_size(checkpoint.origin, "prior's precisions", weights, out.size());
  return out;
}

}  // namespace

SafetensorsFile with_curvature(SafetensorsFile checkpoint, const Curvature& curvature) {
  std::size_t weights = 0;
  for (const Tensor& tensor : checkpoint.tensors) {
    if (tensor.name.starts_with("eta.")) weights += checkpoint.get<float>(tensor.name).size();
  }
  check_same_size(checkpoint.origin, "weights of its curvature", weights, curvature.mean.size());
  const std::vector<float> prior = prior_precisions(checkpoint, weights);
  std::vector<float> lambda(curvature.sum.hessian.begin(), curvature.sum.hessian.end());
  for (std::size_t i = 0; i < weights; ++i) {
    const std::size_t at = packed_index(i, i);
    lambda[at] = float(curvature.sum.hessian[at] + double(prior[i]));
  }
  std::erase_if(checkpoint.tensors, [](const Tensor& tensor) {
    return tensor.name == "lambda" || tensor.name.starts_with("lambda.");
  });
  const auto size = std::int64_t(lambda.size());
  checkpoint.tensors.push_back({"lambda", {size}, Array(std::move(lambda))});
  return checkpoint;
}

}  // namespace fedep
