// ResNets in TorchScript.
#include <set>
#include <string>

#include <fmt/format.h>

#include "fedep/model/resnet18.h"

namespace fedep {
namespace {

// Norms have no weights; padding is TensorFlow's SAME, of which the odd one comes after.
const char* const kResnetParts = R"(
def norm(self, x: Tensor) -> Tensor:
    y = x.reshape(x.size(0), 2, x.size(1) // 2, x.size(2), x.size(3))
    mean = y.mean({dims}, keepdim=True)
    variance = (y - mean).pow(2).mean({dims}, keepdim=True)
    return ((y - mean) / torch.sqrt(variance + 0.001)).reshape(x.size())

def same(self, x: Tensor, kernel: int, stride: int, value: float) -> Tensor:
    h = max(((x.size(2) + stride - 1) // stride - 1) * stride + kernel - x.size(2), 0)
    w = max(((x.size(3) + stride - 1) // stride - 1) * stride + kernel - x.size(3), 0)
    return torch.constant_pad_nd(x, [w // 2, w - w // 2, h // 2, h - h // 2], value)

def conv(self, x: Tensor, w: Tensor, stride: int) -> Tensor:
    return torch.conv2d(self.same(x, w.size(0), stride, 0.0), w.permute(3, 2, 0, 1), None, [stride, stride])
)";

}  // namespace

std::string resnet_module_source(const ModelSettings& settings, const Layout& layout) {
  std::set<std::string> names;
  for (const TensorShape& tensor : layout) names.insert(tensor.name);
  std::string source =
      fmt::format(fmt::runtime(kResnetParts),
                  fmt::arg("dims", settings.norm == NormKind::per_position ? "[2]" : "[2, 3, 4]"));
  source +=
      "\ndef forward(self, x):\n"
      "    x = self.conv(x.permute(0, 3, 1, 2), self.initial_conv, 2)\n"
      "    x = torch.max_pool2d(self.same(x, 3, 2, -float('inf')), [3, 3], [2, 2])\n";
  for (int group = 1; group <= 4; ++group) {
    for (int block = 1; names.contains(fmt::format("group{}.block{}.conv1", group, block));
         ++block) {
      const std::string name = fmt::format("group{}.block{}", group, block);
      const int stride = group > 1 && block == 1 ? 2 : 1;
      source += fmt::format(
          "    y = self.conv(torch.relu(self.norm(x)), self.{0}.conv1, {1})\n"
          "    y = self.conv(torch.relu(self.norm(y)), self.{0}.conv2, 1)\n",
          name, stride);
      source += names.contains(name + ".shortcut")
                    ? fmt::format("    x = y + self.norm(self.conv(x, self.{}.shortcut, {}))\n",
                                  name, stride)
                    : "    x = y + x\n";
    }
  }
  return source +
         "    x = torch.relu(self.norm(x)).mean([2, 3])\n"
         "    return x.matmul(self.logits.w) + self.logits.b\n";
}

}  // namespace fedep
