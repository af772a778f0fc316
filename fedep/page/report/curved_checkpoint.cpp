#include "fedep/page/report/curved_checkpoint.h"

#include <string_view>
#include <utility>
#include <vector>

#include "fedep/message/check.h"
#include "fedep/message/packed.h"

namespace fedep {

SafetensorsFile with_curvature(SafetensorsFile checkpoint, const Curvature& curvature) {
  constexpr std::string_view kPrior = "prior.lambda";
  std::size_t weights = 0;
  for (const Tensor& tensor : checkpoint.tensors) {
    if (tensor.name.starts_with("eta.")) weights += checkpoint.get<float>(tensor.name).size();
  }
  check_same_size(checkpoint.origin, "weights of its curvature", weights, curvature.mean.size());
  const double prior = checkpoint.has(kPrior) ? double(checkpoint.get<float>(kPrior).at(0)) : 0.0;
  std::vector<float> lambda(curvature.sum.hessian.begin(), curvature.sum.hessian.end());
  for (std::size_t i = 0; i < weights; ++i) {
    const std::size_t at = packed_index(i, i);
    lambda[at] = float(curvature.sum.hessian[at] + prior);
  }
  std::erase_if(checkpoint.tensors, [](const Tensor& tensor) {
    return tensor.name == "lambda" || tensor.name.starts_with("lambda.");
  });
  const auto size = std::int64_t(lambda.size());
  checkpoint.tensors.push_back({"lambda", {size}, Array(std::move(lambda))});
  return checkpoint;
}

}  // namespace fedep
