#include "app/posterior/coverage_command.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "app/output.h"
#include "app/posterior/withheld.h"
#include "app/run/run_options.h"
#include "app/run/run_recipe.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/sim/coverage/coverage_study.h"
#include "fedep/sim/curvature.h"
#include "fedep/sim/family_choice.h"
#include "fedep/sim/task.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

// At a terminal, a line that is written over.
void show_progress(std::size_t done, std::size_t replicates) {
  if (isatty(STDERR_FILENO) != 1) return;
  say_to_terminal(fmt::format("\rreplicate {} of {}{}", done, replicates,
                              done == replicates ? "\r\x1b[K" : ""));
}

Json json_of(const Measured& measured) {
  return {{"value", measured.value}, {"error", measured.error}};
}

Json json_of(const CoverageNumbers& numbers) {
  Json covered = Json::array();
  for (std::size_t i = 0; i < kIntervalLevels.size(); ++i) {
    Json one{{"level", kIntervalLevels[i]}};
    one.update(json_of(numbers.covered[i]));
    covered.push_back(std::move(one));
  }
  return {{"covered", std::move(covered)}, {"sd_ratio", json_of(numbers.deviation_ratio)}};
}

Json json_of(const std::string& name, const CoefficientCoverage& one) {
  Json out{{"name", name}};
  out.update(json_of(static_cast<const CoverageNumbers&>(one)));
  out["rank_bins"] = one.bins;
  out["rank_chi_square"] = one.chi_square;
  out["rank_p"] = one.p_value;
  out["ranks"] = one.ranks;
  return out;
}

std::string cells(const CoverageNumbers& numbers) {
  std::string out;
  for (const Measured& share : numbers.covered) {
    out += fmt::format("  {:>5.1f} ±{:>4.1f}", 100 * share.value, 100 * share.error);
  }
  return out + fmt::format("  {:>6.3f} ±{:>6.3f}", numbers.deviation_ratio.value,
                           numbers.deviation_ratio.error);
}

void write_pages(const std::filesystem::path& folder, const CoverageReport& report) {
  make_folder(folder);
  const auto write = [&](std::string_view name, const std::string& text) {
    replace_file(folder / name, std::as_bytes(std::span(text)));
  };
  write("coverage.json", coverage_json(report));
  write("coverage.html", coverage_page(report));
  say("wrote {} and {}\n", (folder / "coverage.html").string(),
      (folder / "coverage.json").string());
}

// Throws InputError where no run of the recipe tells deviations.
void check_told(Recipe recipe) {
  if (has_curvature(recipe)) return;
  PhaseSettings& last = recipe.phases.back();
  last.clip = 0;  // whether it acts is not known before
  const bool full = last.inference && last.inference->family == FamilyChoice::full;
  const std::string why = why_withheld({.recipe = recipe,
                                        .phase = recipe.phases.size() - 1,
                                        .round = rounds_of(recipe),
                                        .full = full});
  if (!why.empty()) throw InputError(fmt::format("coverage: there are no intervals: {}", why));
}

}  // namespace

CoverageReport study_coverage(const Recipe& recipe, const CoverageAsked& asked) {
  if (const std::string why = coverage_problem(recipe); !why.empty()) {
    throw InputError("coverage: " + why);
  }
  if (!find_dataset(recipe.data.name).has_examples()) {
    throw InputError(
        fmt::format("coverage: data must have rows, but {} have none", recipe.data.name));
  }
  const std::unique_ptr<Task> task = make_task(recipe, asked.data);
  const Recipe decided = decide_families(recipe, *task).recipe;
  plan_run(decided, *task);  // what a run would be refused for
  check_told(decided);
  const Dataset* const rows = task->data();
  CoverageReport report{
      .recipe = asked.recipe,
      .data = rows->info().name,
      .algorithm = recipe.phases.back().algorithm,
      .seed = recipe.seed,
      .clients = rows->clients().size(),
      .prior_mean = recipe.server.prior->mean,
      .prior_precision = recipe.server.prior->precision,
      .truth_precision = asked.truth_precision.value_or(recipe.server.prior->precision)};
  for (const auto& client : rows->clients()) report.rows += client.second;
  CoverageStudy study = run_coverage_study(
      recipe, *rows,
      {.replicates = asked.replicates,
       .threads = asked.threads,
       .truth_precision = asked.truth_precision,
       .done = [&](std::size_t done) { show_progress(done, asked.replicates); }});
  if (study.replicates.size() < 2) {
    throw RunError(fmt::format(
        "coverage: two replicates at least must have a posterior, but {} of {} had none: {}",
        study.failed, asked.replicates, study.first_failure));
  }
  report.names = std::move(study.names);
  report.found = interval_coverage(study.replicates);
  report.failed = study.failed;
  report.first_failure = std::move(study.first_failure);
  return report;
}

std::string coverage_text(const CoverageReport& report) {
  std::size_t width = std::string_view("coefficient").size();
  for (const std::string& name : report.names) width = std::max(width, name.size());
  std::string out = fmt::format(
      "{}: {} clients, {} rows, {} coefficients; {}, {} replicates, seed {}\n"
      "Truths are drawn from N({:g}, {:.3g}²), outcomes for the recipe's own rows from them.\n"
      "Share of truths in intervals in %, and sd over the size of errors, ± standard error\n\n",
      report.data, report.clients, report.rows, report.names.size(), report.algorithm,
      report.found.replicates, report.seed, report.prior_mean,
      1 / std::sqrt(report.truth_precision));
  out += fmt::format("{:<{}}", "coefficient", width);
  for (const double level : kIntervalLevels) {
    out += fmt::format("  {:>11}", fmt::format("{:.0f} %", 100 * level));
  }
  out += fmt::format("  {:>14}  {:>8}\n", "sd ratio", "ranks, p");
  for (std::size_t j = 0; j < report.names.size(); ++j) {
    const CoefficientCoverage& one = report.found.coefficients[j];
    out += fmt::format("{:<{}}{}  {:>8.2g}\n", report.names[j], width, cells(one), one.p_value);
  }
  out += fmt::format("{:<{}}{}  {:>8.2g}\n\n", "all", width, cells(report.found.all),
                     report.found.ranks_p_value());
  const std::vector<std::string> doubts = report.doubts();
  for (const std::string& doubt : doubts) out += fmt::format("Doubt: {}.\n", doubt);
  if (doubts.empty()) out += "Nothing speaks against these intervals.\n";
  if (report.found.coefficients[0].bins == 0) {
    out += "Ranks are not tested: that needs 20 replicates.\n";
  }
  return out;
}

std::string coverage_json(const CoverageReport& report) {
  Json coefficients = Json::array();
  for (std::size_t j = 0; j < report.names.size(); ++j) {
    coefficients.push_back(json_of(report.names[j], report.found.coefficients[j]));
  }
  Json out{{"recipe", report.recipe},
           {"data", report.data},
           {"algorithm", report.algorithm},
           {"seed", report.seed},
           {"clients", report.clients},
           {"rows", report.rows},
           {"prior", {{"mean", report.prior_mean}, {"precision", report.prior_precision}}},
           {"truth_precision", report.truth_precision},
           {"replicates", report.found.replicates},
           {"failed", report.failed}};
  if (report.failed > 0) out["first_failure"] = report.first_failure;
  out.update(json_of(report.found.all));
  out["ranks_p"] = report.found.ranks_p_value();
  out["doubts"] = report.doubts();
  out["coefficients"] = std::move(coefficients);
  return out.dump() + "\n";
}

void add_coverage_command(Command& app, int&) {
  struct Options {
    CoverageAsked asked;
    std::string data, out;
    std::optional<std::uint64_t> seed;
    std::vector<std::string> overrides;
    bool json = false;
  };
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command = app.add_subcommand(
      "coverage", "what a recipe's intervals hold, where truths are drawn from its prior");
  command->add_option("recipe", options->asked.recipe, "recipe file (TOML)")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command
      ->add_option("--replicates", options->asked.replicates,
                   "truths to draw, each with a run of its own")
      ->capture_default_str()
      ->check(whole_number(2, 1'000'000));
  command->add_option("--threads", options->asked.threads, "replicates in parallel")
      ->capture_default_str()
      ->check(whole_number(1, 4096));
  command->add_option("--seed", options->seed, "seed instead of the recipe's")
      ->check(whole_number(0));
  command->add_option("--set", options->overrides, "section.key=value instead of the recipe's")
      ->take_all();
  command
      ->add_option("--truth-precision", options->asked.truth_precision,
                   "of the truths, instead of the prior's: what a wrong prior does")
      ->type_name("P");
  command->add_option("--out", options->out, "folder for coverage.html and coverage.json")
      ->type_name("FOLDER");
  command->add_flag("--json", options->json, "one line of JSON in place of the table");
  command->callback([options] {
    std::vector<std::string> overrides = options->overrides;
    if (options->seed) overrides.push_back(fmt::format("seed={}", *options->seed));
    options->asked.data = data_folder(options->data);
    const CoverageReport report =
        study_coverage(read_recipe(options->asked.recipe, overrides), options->asked);
    if (!options->out.empty()) write_pages(options->out, report);
    print_text("{}", options->json ? coverage_json(report) : coverage_text(report));
  });
}

}  // namespace fedep
