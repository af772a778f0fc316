// Models written as TorchScript. A built-in model becomes a module whose parameters are registered
// under the layout's names ("conv1.weight": parameter weight of submodule conv1) and whose forward is
// compiled from a source text. Tested against the models themselves.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "fedep/message/check.h"
#include "fedep/model/torchscript.h"

namespace fedep {
namespace {

using torch::Tensor;
using torch::jit::Module;

const char* const kLinear = R"(
def forward(self, x):
    return x.flatten(1).matmul(self.weight) + self.bias
)";

// Kernels are kept as [height, width, in, out]; torch wants [out, in, height, width].
const char* const kCnn = R"(
def forward(self, x):
    x = x.permute(0, 3, 1, 2)
    x = torch.relu(torch.conv2d(x, self.conv1.weight.permute(3, 2, 0, 1), self.conv1.bias))
    x = torch.relu(torch.conv2d(x, self.conv2.weight.permute(3, 2, 0, 1), self.conv2.bias))
    x = torch.max_pool2d(x, [2, 2], [2, 2])
    x = x.permute(0, 2, 3, 1).flatten(1)
    x = torch.relu(x.matmul(self.hidden.weight) + self.hidden.bias)
    return x.matmul(self.logits.weight) + self.logits.bias
)";

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

std::string resnet_source(const Layout& layout, NormKind norm) {
  std::set<std::string> names;
  for (const TensorShape& tensor : layout) names.insert(tensor.name);
  std::string source =
      fmt::format(fmt::runtime(kResnetParts),
                  fmt::arg("dims", norm == NormKind::per_position ? "[2]" : "[2, 3, 4]"));
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

std::string source_of(const ModelSettings& settings, const Layout& layout) {
  if (settings.name == "linear") return kLinear;
  if (settings.name == "cnn") return kCnn;
  if (settings.name.starts_with("resnet")) return resnet_source(layout, settings.norm);
  throw InputError(
      fmt::format("export: model must be linear, cnn, a resnet or torchscript to become "
                  "TorchScript, but is {}",
                  settings.name));
}

// Parameters by their dotted names: a folder of parameters and of further folders.
struct Folder {
  std::vector<std::pair<std::string, Tensor>> parameters;
  std::vector<std::pair<std::string, Folder>> folders;

  void add(std::string_view name, const Tensor& tensor) {
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos) {
      parameters.emplace_back(name, tensor);
      return;
    }
    const std::string first(name.substr(0, dot));
    if (folders.empty() || folders.back().first != first) folders.emplace_back(first, Folder{});
    folders.back().second.add(name.substr(dot + 1), tensor);
  }

  Module module(const std::string& name) const {
    Module out(name);
    for (const auto& [key, tensor] : parameters) out.register_parameter(key, tensor, false);
    for (const auto& [key, folder] : folders) {
      out.register_module(key, folder.module(name + "_" + key));
    }
    out.register_attribute("training", c10::BoolType::get(), false);
    return out;
  }
};

Tensor tensor_of(const TensorShape& shape, std::span<const float> values) {
  return torch::from_blob(const_cast<float*>(values.data()), shape.shape).clone();
}

Module built_in(const ModelSettings& settings, const Layout& layout, std::span<const float> theta) {
  const std::string source = source_of(settings, layout);
  Folder root;
  std::size_t begin = 0;
  for (const TensorShape& tensor : layout) {
    root.add(tensor.name, tensor_of(tensor, theta.subspan(begin, tensor.size())));
    begin += tensor.size();
  }
  Module module = root.module("fedep_" + settings.name);
  try {
    module.define(source);
  } catch (const std::exception&) {  // names that the source speaks of are not there
    throw InputError(
        fmt::format("export: tensors must be those of model {}, but are not", settings.name));
  }
  return module;
}

Module with_parameters(const ModelSettings& settings, const Layout& layout,
                       std::span<const float> theta) {
  Module module;
  try {
    module = torch::jit::load(settings.path, torch::kCPU);
  } catch (const c10::Error&) {
    throw InputError(
        fmt::format("export: {} must be the TorchScript module that was trained, but "
                    "cannot be read",
                    settings.path));
  }
  const torch::NoGradGuard guard;
  std::size_t i = 0, begin = 0;
  for (const auto& parameter : module.named_parameters()) {
    if (i == layout.size() || layout[i].name != parameter.name ||
        layout[i].shape != parameter.value.sizes().vec()) {
      i = layout.size() + 1;
      break;
    }
    Tensor target = parameter.value;
    target.copy_(tensor_of(layout[i], theta.subspan(begin, layout[i].size())));
    begin += layout[i++].size();
  }
  if (i != layout.size()) {
    throw InputError(fmt::format(
        "export: {} must have the parameters of the checkpoint, but has others", settings.path));
  }
  module.eval();
  return module;
}

}  // namespace

void save_torchscript(const ModelSettings& settings, const Layout& layout,
                      std::span<const float> theta, const std::filesystem::path& path) {
  check_same_size("save_torchscript", "theta", size_of(layout), theta.size());
  const Module module = settings.name == "torchscript" ? with_parameters(settings, layout, theta)
                                                       : built_in(settings, layout, theta);
  try {
    module.save(path.string());
  } catch (const std::exception&) {
    throw RunError(fmt::format("{}: cannot write", path.string()));
  }
}

}  // namespace fedep
