// What a client knows of its own intercept b, given what is shared (model/shared_extras.h): its rows as a Gaussian
// factor of (β, b),
//
//   exp(pull b - ½ precision b² - b coupling·β),
//
// by EP over its rows where θ is q's mean; of numbers exactly, and at σ = 1. With b ~ N(m, τ²) it is
//
//   b | θ ~ N(v ((pull - coupling·β) / σ² + m / τ²), v),    1/v = precision / σ² + 1/τ²,
//
// so that draws of θ from q and of b given θ are draws of both. A client that nobody knows has the factor 1.
//
//   const OwnIntercepts own = own_intercepts(data, *model, theta);
//   const InterceptGiven b = intercept_given(own.of("ward-3"), model->likelihood(), extras, draw);
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/dataset.h"
#include "fedep/inference/rows/glm_rows.h"
#include "fedep/model/model.h"
#include "fedep/model/shared_extras.h"

namespace fedep {

struct OwnIntercept {
  double precision = 0;
  double pull = 0;
  std::vector<double> coupling = {};  // [columns without the intercept's]; empty: zeros

  bool operator==(const OwnIntercept&) const = default;
};

class OwnIntercepts {
 public:
  void add(std::string client, OwnIntercept own) { own_.insert_or_assign(std::move(client), own); }
  // The factor 1 for a client that is not among them.
  const OwnIntercept& of(const std::string& client) const;
  bool knows(const std::string& client) const { return own_.contains(client); }
  const std::map<std::string, OwnIntercept>& all() const { return own_; }

 private:
  std::map<std::string, OwnIntercept> own_;
};

// Of one client's rows, at these shared parameters.
OwnIntercept own_intercept(const GlmRows& rows, const SharedExtras& extras,
                           std::span<const float> theta);
// Of all clients of `data`. Empty where the model has no intercepts of clients' own.
OwnIntercepts own_intercepts(const Dataset& data, const Model& model, std::span<const float> theta);

struct InterceptGiven {
  double mean = 0;
  double variance = 0;
};
// `known`: the model's likelihood; where noise is estimated it is θ's.
InterceptGiven intercept_given(const OwnIntercept& own, const Likelihood& known,
                               const SharedExtras& extras, std::span<const float> theta);

}  // namespace fedep
