// Intercepts of hospitals' own and estimated noise: runs of sites that stay apart against the hierarchical
// model of their pooled rows. Some designs; site_tables has all.
#include <gtest/gtest.h>

#include "test/site_study.h"

namespace fedep {
namespace {

constexpr SamplerSettings kFew{.chains = 2, .draws = 3000};

void expect_near(const SiteComparison& found, double log_site_sd = 0.3) {
  EXPECT_LT(found.rhat, 1.02);
  EXPECT_LT(found.weights.distance, 0.1);
  EXPECT_GT(found.weights.least_ratio, 0.9);
  EXPECT_LT(found.weights.largest_ratio, 1.1);
  EXPECT_LT(found.intercept.distance, 0.1);
  EXPECT_NEAR(found.intercept.least_ratio * found.intercept.largest_ratio, 1, 0.2);
  if (found.log_site_sd) {
    EXPECT_LT(found.log_site_sd->distance, log_site_sd);
  }
  if (found.log_noise) {
    EXPECT_LT(found.log_noise->distance, 0.1);
    EXPECT_NEAR(found.log_noise->largest_ratio, 1, 0.1);
  }
}

TEST(SiteIntercepts, OfTwelveLopsidedHospitalsAreTheHierarchys) {
  const SiteDesign design{.sites = {120, 60, 30, 30, 20, 15, 12, 10, 8, 6, 4, 3}};
  expect_near(compare(design, "fed_ep", 25, kFew));
}

TEST(SiteIntercepts, OfFourHospitalsWithCounts) {
  const SiteDesign design{
      .sites = {60, 40, 25, 10}, .outcome = TargetKind::count, .correlation = 0.7, .seed = 2};
  expect_near(compare(design, "fed_ep", 25, kFew));
}

TEST(SiteIntercepts, TogetherWithNoiseThatIsNotKnown) {
  const SiteDesign design{.sites = {60, 40, 25, 10, 30, 8},
                          .outcome = TargetKind::real,
                          .noise = 2.5,
                          .estimates_noise = true,
                          .seed = 3};
  expect_near(compare(design, "fed_ep", 25, kFew));
}

TEST(EstimatedNoise, IsThePooledPosteriors) {
  const SiteDesign design{.sites = {40, 15, 5},
                          .outcome = TargetKind::real,
                          .noise = 3,
                          .intercepts = false,
                          .estimates_noise = true,
                          .seed = 4};
  expect_near(compare(design, "fed_ep", 25, kFew));
}

}  // namespace
}  // namespace fedep
