// The table of inference methods. Its rows are made once for every storage V: a core's vectors and a
// GPU's have the same methods, and a method that compiles for both runs on both.
#pragma once

#include <array>
#include <string_view>
#include <vector>

#include "fedep/inference/cohort.h"
#include "fedep/inference/ivon.h"
#include "fedep/inference/laplace.h"
#include "fedep/inference/map.h"
#include "fedep/inference/method.h"
#include "fedep/inference/ngvi.h"
#include "fedep/inference/sample_moments.h"
#include "fedep/inference/scaled_identity.h"

namespace fedep {

template <Storage V>
struct MethodRow {
  Method method;
  // The tilted distribution of every row of a cohort whose chains have ended. What it says of a client
  // without examples is not used.
  std::vector<Gaussian<V>> (*tilted)(Cohort<V>& cohort, const InferenceSettings& settings);
};

template <Storage V>
inline constexpr std::array kMethodTable{
    MethodRow<V>{{.name = "scaled_identity",
                  .title = "scaled identity",
                  .summary = "precision set to alpha per example, nothing estimated",
                  .family = Family::isotropic,
                  .precision_setting = identity_setting,
                  .reads_alpha = [](const InferenceSettings&) { return true; }},
                 scaled_identity<V>},
    MethodRow<V>{{.name = "sample_moments",
                  .title = "sample moments",
                  .summary = "variances of the chain's samples, shrunk",
                  .family = Family::diagonal,
                  .needs_variance = true,
                  .check = check_sample_moments,
                  .precision_setting = moments_setting,
                  .reads_alpha = [](const InferenceSettings& s) { return s.rescale; }},
                 sample_moments<V>},
    MethodRow<V>{
        {.name = "laplace",
         .title = "Laplace",
         .summary = "diagonal Fisher information at the chain's mean; full: the mode's Hessian",
         .family = Family::diagonal,
         .keeps_cavity = true,
         .precision_setting = fisher_setting},
        laplace<V>},
    MethodRow<V>{{.name = "ngvi",
                  .title = "NGVI",
                  .summary = "natural-gradient variational inference of the precision",
                  .family = Family::diagonal,
                  .keeps_cavity = true,
                  .check = check_ngvi,
                  .precision_setting = fisher_setting,
                  .start_left = running_mean_start},
                 ngvi<V>},
    MethodRow<V>{{.name = "map",
                  .title = "MAP",
                  .summary = "the chain's last iterate, no precision of its own",
                  .family = Family::isotropic,
                  .keeps_cavity = true,
                  .precision_setting = map_setting},
                 map_estimate<V>},
    MethodRow<V>{{.name = "ivon",
                  .title = "IVON",
                  .summary = "variational online Newton: mean and precision by one chain",
                  .family = Family::diagonal,
                  .own_chain = true,
                  .on_gpu = false,
                  .check = check_ivon,
                  .start_left = running_mean_start},
                 ivon<V>},
};

// Throws as find_method() does.
template <Storage V>
const MethodRow<V>& method_row(std::string_view name) {
  return kMethodTable<V>[std::size_t(&find_method(name) - methods().data())];
}

}  // namespace fedep
