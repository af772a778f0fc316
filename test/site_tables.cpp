// Prints the tables of result/coverage.md on hospitals' own intercepts and estimated noise: designs of many
// kinds, each against HMC of the hierarchical model on all rows.
//
//   build/bin/site_tables [DRAWS [OUTCOME]]   draws of each of four chains, 5000; "yes or no", count or number
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "fedep/sim/process.h"
#include "test/site_study.h"

namespace fedep {
namespace {

std::vector<std::size_t> lopsided(std::size_t sites, std::size_t largest) {
  std::vector<std::size_t> out;
  for (std::size_t k = 0; k < sites; ++k) {
    out.push_back(std::max<std::size_t>(2, largest / (k + 1)));
  }
  return out;
}

std::vector<SiteDesign> designs() {
  struct Shape {
    std::string name;
    std::vector<std::size_t> sites;
    double correlation;
  };
  const std::vector<Shape> shapes{
      {"4 hospitals of 60", std::vector<std::size_t>(4, 60), 0},
      {"4 hospitals, 150 to 37 rows", lopsided(4, 150), 0.8},
      {"12 hospitals, 200 to 16 rows", lopsided(12, 200), 0},
      {"12 hospitals of 6", std::vector<std::size_t>(12, 6), 0},
      {"36 hospitals, 200 to 5 rows", lopsided(36, 200), 0.5},
  };
  std::vector<SiteDesign> out;
  std::uint64_t seed = 10;
  for (const TargetKind outcome : {TargetKind::binary, TargetKind::count, TargetKind::real}) {
    for (const Shape& shape : shapes) {
      out.push_back({.name = shape.name,
                     .sites = shape.sites,
                     .outcome = outcome,
                     .correlation = shape.correlation,
                     .site_sd = ++seed % 3 == 0 ? 0.2 : 0.8,
                     .noise = 1.5,
                     .estimates_noise = outcome == TargetKind::real,
                     .seed = seed});
    }
  }
  for (const Shape& shape : shapes) {
    out.push_back({.name = shape.name,
                   .sites = shape.sites,
                   .outcome = TargetKind::real,
                   .correlation = shape.correlation,
                   .noise = 4,
                   .intercepts = false,
                   .estimates_noise = true,
                   .seed = ++seed});
  }
  return out;
}

std::string text_of(const std::optional<Gap>& gap) {
  if (!gap) return "– | –";
  const double ratio =
      gap->least_ratio < 1 / gap->largest_ratio ? gap->least_ratio : gap->largest_ratio;
  return fmt::format("{:.3f} | {:.2f}", gap->distance, ratio);
}

std::string_view name_of(TargetKind outcome) {
  if (outcome == TargetKind::binary) return "yes or no";
  return outcome == TargetKind::count ? "count" : "number";
}

void print_row(const SiteDesign& design, const std::string& algorithm, int rounds, int draws) {
  const SiteComparison found = compare(design, algorithm, rounds, {.draws = draws});
  fmt::print("| {} | {} | {} | {} | {} | {} | {} | {:.2f} ± {:.2f} | {:.0f} | {:.3f} | {:.1f} |\n",
             name_of(design.outcome), design.name, algorithm, text_of(found.weights),
             text_of(found.intercept), text_of(found.log_site_sd), text_of(found.log_noise),
             found.pooled_log_site_sd, found.pooled_log_site_sd_deviation, found.effective,
             found.rhat, found.seconds);
  std::fflush(stdout);
}

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  fedep::prepare_process();
  const int draws = argc > 1 ? std::atoi(argv[1]) : 5000;
  fmt::print(
      "| outcome | hospitals | algorithm | β: distance | sd ratio | m: distance | sd ratio | log "
      "τ: distance | sd "
      "ratio "
      "| log σ: distance | sd ratio | pooled log τ | effective draws | R̂ | seconds |\n");
  fmt::print(
      "| --- | --- | --- |{}\n",
      " ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
  for (const fedep::SiteDesign& design : fedep::designs()) {
    if (argc > 2 && fedep::name_of(design.outcome) != argv[2]) continue;
    fedep::print_row(design, "fed_ep", 30, draws);
    fedep::print_row(design, "fed_sep", 60, draws);
  }
  return 0;
}
