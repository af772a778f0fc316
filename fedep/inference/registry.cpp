#include "fedep/inference/registry.h"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "fedep/inference/rows/row_method.h"
#include "fedep/message/check.h"
#include "fedep/message/table.h"

namespace fedep {
namespace {

// The rows without what depends on a storage.
constexpr auto kMethods = [] {
  constexpr auto& table = kMethodTable<HostVector<float>>;
  std::array<Method, table.size()> methods{};
  for (std::size_t i = 0; i < table.size(); ++i) methods[i] = table[i].method;
  return methods;
}();

}  // namespace

std::span<const Method> methods() { return kMethods; }

const Method& find_method(std::string_view name) {
  const auto found = std::ranges::find(kMethods, name, &Method::name);
  if (found != kMethods.end()) return *found;
  if (find_row_method(name) != nullptr) {
    throw InputError(fmt::format("inference method {} has the family full alone", name));
  }
  std::vector<std::string_view> known = names_of(kMethods);
  for (const RowMethod& method : row_methods()) {
    if (is_row_method_only(method.name)) known.push_back(method.name);
  }
  throw InputError(unknown_name("inference method", name, known));
}

void check_inference(const InferenceSettings& settings, int chain_epochs) {
  const Method& method = find_method(settings.name);
  if (method.check != nullptr) method.check(settings, chain_epochs);
}

bool reads_alpha(const InferenceSettings& settings) {
  if (settings.family == FamilyChoice::full) return false;
  const auto found = std::ranges::find(kMethods, settings.name, &Method::name);
  return found != kMethods.end() && found->reads_alpha != nullptr && found->reads_alpha(settings);
}

void check_samples(const InferenceSettings& settings, int chain_epochs) {
  if (chain_epochs > settings.mixin_epochs) return;
  fail("phase.inference", "client.epochs with posterior samples",
       fmt::format("greater than mixin_epochs ({})", settings.mixin_epochs),
       fmt::format("{}", chain_epochs));
}

}  // namespace fedep
