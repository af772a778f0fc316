// Models written as TorchScript. A built-in model becomes a module whose parameters are registered
// under the layout's names ("conv1.weight": parameter weight of submodule conv1) and whose forward is
// compiled from the source text of its row in registry.cpp. Tested against the models themselves.
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <torch/script.h>
#include <torch/torch.h>

#include "fedep/message/check.h"
#include "fedep/model/registry.h"
#include "fedep/model/torchscript.h"

namespace fedep {
namespace {

using torch::Tensor;
using torch::jit::Module;

std::string source_of(const ModelSettings& settings, const Layout& layout) {
  const ModelRow& row = find_model(settings.name);
  if (row.module_source == nullptr) {
    throw InputError(fmt::format("export: model {} cannot be written as TorchScript", row.name));
  }
  return row.module_source(settings, layout);
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
                      std::span<const float> theta, const std::filesystem::path& path,
                      const std::map<std::string, std::string>& about) {
  check_same_size("save_torchscript", "theta", size_of(layout), theta.size());
  const Module module = find_model(settings.name).is_module
                            ? with_parameters(settings, layout, theta)
                            : built_in(settings, layout, theta);
  try {
    module.save(path.string(), {about.begin(), about.end()});
  } catch (const std::exception&) {
    throw RunError(fmt::format("{}: cannot write", path.string()));
  }
}

}  // namespace fedep
