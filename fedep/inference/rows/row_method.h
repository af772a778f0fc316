// Inference methods of the full family: from a cavity with a full precision and a client's rows
// (glm_rows.h) to the tilted distribution, in double. They read nothing of client.*, since no chain
// runs; the methods of registry.h go by chains and have mean-field tilted distributions.
//
//   const GlmTilted tilted = find_row_method("laplace")->tilted(cavity, rows, address);
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/inference/rows/full_laplace.h"
#include "fedep/inference/rows/glm_rows.h"
#include "fedep/inference/rows/glm_tilted.h"
#include "fedep/random/stream.h"

namespace fedep {

struct RowMethod {
  std::string_view name;
  std::string_view title;  // for people
  std::string_view summary;
  // Why it cannot be had with these settings; empty if it can.
  std::string (*problem)(const InferenceSettings& settings);
  // Randomness, where there is any, comes from `address`.
  GlmTilted (*tilted)(const DenseGaussian<double>& cavity, const GlmRows& rows,
                      const Address& address);
  // The same of rows whose outcome is one of several classes. Null: it has none.
  GlmTilted (*tilted_of_classes)(const DenseGaussian<double>& cavity,
                                 const ClassRows& rows) = nullptr;
  bool draws = false;  // its answers are random, given the cavity
};

std::span<const RowMethod> row_methods();
// Null if there is none of this name.
const RowMethod* find_row_method(std::string_view name);
// Whether a method of this name infers on rows alone: chains know none.
bool is_row_method_only(std::string_view name);

// What an empty name means where the family is full.
inline constexpr std::string_view kDefaultRowMethod = "quadrature";

}  // namespace fedep
