// Made-up hospitals whose intercepts vary, played by sites that stay apart and held against HMC of the
// hierarchical model on all rows together (pooled_hierarchy.h).
//
//   const SiteComparison found = compare({.sites = {40, 20, 90, 5}, .outcome = TargetKind::binary}, "fed_ep", 30);
//   found.weights, found.log_site_sd      // distances in pooled deviations
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/round/server_state.h"
#include "fedep/sim/task.h"
#include "test/pooled_hierarchy.h"

namespace fedep {

struct SiteDesign {
  std::string name = {};
  std::vector<std::size_t> sites = {};  // training rows of each
  TargetKind outcome = TargetKind::binary;
  std::size_t columns = 4;
  double correlation = 0;
  double site_sd = 0.8;
  double noise = 1;  // of numbers
  bool intercepts = true, estimates_noise = false;
  std::size_t held_out = 0;  // rows of each
  std::uint64_t seed = 1;
};

std::unique_ptr<Dataset> draw_sites(const SiteDesign& design);
Recipe recipe_of(const SiteDesign& design, const std::string& algorithm, int rounds);

// |mean - pooled mean| in pooled deviations, and q's deviation over the pooled one, the furthest of each kind.
struct Gap {
  double distance = 0, least_ratio = 1, largest_ratio = 1;

  void note(double by, double ratio);
};
struct SiteComparison {
  Gap weights;    // of the columns
  Gap intercept;  // of m
  std::optional<Gap> log_site_sd, log_noise;
  double pooled_log_site_sd = 0, pooled_log_site_sd_deviation = 0;
  double rhat = 0, effective = 0;  // of the pooled chains
  double seconds = 0;              // of the federated run
};

// The state after the last round of a run in memory, on one thread.
ServerState play_in_memory(const Recipe& recipe, Task& task);

SiteComparison compare(const SiteDesign& design, const std::string& algorithm, int rounds,
                       const SamplerSettings& sampler = {});

}  // namespace fedep
