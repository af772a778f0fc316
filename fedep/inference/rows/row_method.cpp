#include "fedep/inference/rows/row_method.h"

#include <algorithm>
#include <array>
#include <string>

#include <fmt/format.h>

#include "fedep/inference/method.h"
#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/full_ngvi.h"
#include "fedep/inference/rows/hmc.h"
#include "fedep/inference/rows/quadrature.h"

namespace fedep {
namespace {

// What chains' Laplace and NGVI read and these do not: whoever has set it wants those.
std::string chain_setting(const InferenceSettings& settings) {
  if (settings.scale != 1)
    return fmt::format("{} has scale {}, not 1", settings.name, settings.scale);
  if (settings.clip_std != 0) {
    return fmt::format("{} has clip_std {}, not 0", settings.name, settings.clip_std);
  }
  if (settings.langevin) return fmt::format("{} has langevin, which is a chain's", settings.name);
  return {};
}

GlmTilted by_quadrature(const DenseGaussian<double>& cavity, const GlmRows& rows, const Address&) {
  return quadrature_tilted(cavity, rows);
}
GlmTilted by_laplace(const DenseGaussian<double>& cavity, const GlmRows& rows, const Address&) {
  return laplace_tilted(cavity, rows);
}
GlmTilted by_laplace_of_classes(const DenseGaussian<double>& cavity, const ClassRows& rows) {
  return laplace_tilted(cavity, rows);
}
GlmTilted by_ngvi(const DenseGaussian<double>& cavity, const GlmRows& rows, const Address&) {
  return ngvi_tilted(cavity, rows);
}
GlmTilted by_hmc(const DenseGaussian<double>& cavity, const GlmRows& rows, const Address& address) {
  return hmc_tilted(cavity, rows, {}, address);
}

constexpr std::array kRowMethods{
    RowMethod{
        .name = "quadrature",
        .title = "quadrature",
        .summary = "mean and covariance of the tilted distribution, by EP over a table's rows",
        .problem = nullptr,
        .tilted = by_quadrature},
    RowMethod{
        .name = "hmc",
        .title = "HMC",
        .summary = "mean and covariance of draws from the tilted distribution, on a table's rows",
        .problem = nullptr,
        .tilted = by_hmc,
        .draws = true},
    RowMethod{.name = "laplace",
              .title = "Laplace",
              .summary = "the tilted distribution's mode and its whole Hessian there",
              .problem = chain_setting,
              .tilted = by_laplace,
              .tilted_of_classes = by_laplace_of_classes},
    RowMethod{.name = "ngvi",
              .title = "NGVI",
              .summary = "the Gaussian nearest to the tilted distribution, by natural gradients",
              .problem = chain_setting,
              .tilted = by_ngvi},
};

}  // namespace

std::span<const RowMethod> row_methods() { return kRowMethods; }

const RowMethod* find_row_method(std::string_view name) {
  const auto found = std::ranges::find(kRowMethods, name, &RowMethod::name);
  return found == kRowMethods.end() ? nullptr : &*found;
}

bool is_row_method_only(std::string_view name) {
  const bool by_chains = std::ranges::find(methods(), name, &Method::name) != methods().end();
  return find_row_method(name) != nullptr && !by_chains;
}

}  // namespace fedep
