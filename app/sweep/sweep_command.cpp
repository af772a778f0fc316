#include "app/sweep/sweep_command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/file_name.h"
#include "app/output.h"
#include "app/reproduce/finished_run.h"
#include "app/reproduce/reproduce_check.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/interrupt.h"
#include "app/run/run_recipe.h"
#include "app/sweep/sweep_table.h"
#include "app/trust.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/page/figure/curve_figure.h"
#include "fedep/page/report/run_curves.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

struct SweepOptions {
  std::string recipe;
  std::vector<std::string> grid, set;
  std::vector<std::uint64_t> seeds;  // none: the recipe's own
  std::optional<std::int64_t> rounds;
  std::string out, data, figure, score;
  std::string device = "cpu", precision = "tf32";
  std::size_t threads = 1;
  bool json = false;
};

fs::path folder_of(const SweepOptions& options) {
  if (!options.out.empty()) return options.out;
  return fs::path("run") / "sweep" / fs::path(options.recipe).stem();
}

// A run of each cell with each seed, cell after cell. All recipes are read before anything is played.
std::vector<std::vector<Plan>> plans_of(const SweepOptions& options,
                                        const std::vector<Cell>& cells) {
  std::vector<std::vector<Plan>> plans;
  for (const Cell& cell : cells) {
    std::vector<std::string> overrides = options.set;
    overrides.insert(overrides.end(), cell.overrides.begin(), cell.overrides.end());
    Recipe recipe = read_recipe(options.recipe, overrides);
    if (options.rounds) recipe = shortened(std::move(recipe), *options.rounds);
    std::vector<std::uint64_t> seeds = options.seeds;
    if (seeds.empty()) seeds.push_back(recipe.seed);
    std::vector<Plan>& own = plans.emplace_back();
    for (const std::uint64_t seed : seeds) {
      recipe.seed = seed;
      const std::string name = cell.overrides.empty() ? "recipe" : cell.name();
      own.push_back({.row = name,
                     .recipe = recipe,
                     .out = folder_of(options) /
                            file_name_part(fmt::format("{}", fmt::join(cell.overrides, "+"))) /
                            fmt::format("seed-{}", seed),
                     .shortened = options.rounds.has_value()});
    }
  }
  return plans;
}

void check_before_work(const SweepOptions& options, const std::vector<std::vector<Plan>>& plans) {
  check_device(options.device, options.precision);
  std::vector<Plan> unfinished;
  for (const auto& cell : plans) {
    for (const Plan& plan : cell) {
      if (!is_finished(plan.recipe, plan.out)) unfinished.push_back(plan);
    }
  }
  check_reproduce(unfinished,
                  {.table = "sweep", .data = data_folder(options.data), .device = options.device});
}

RunRecipeOptions run_options(const SweepOptions& options, const Plan& plan) {
  return {.out = plan.out,
          .data = data_folder(options.data),
          .threads = options.threads,
          .resume = is_begun(plan.out),
          .device = options.device,
          .precision = options.precision};
}

// Nothing after Ctrl-C; what was finished until then is kept.
std::optional<SweptRun> swept(const SweepOptions& options, const Plan& plan,
                              std::string_view place) {
  const bool finished = is_finished(plan.recipe, plan.out);
  say("[{}] {}, seed {}: {}\n", place, plan.row, plan.recipe.seed,
      finished ? "finished already" : plan.out.string());
  History history;
  if (finished) {
    history = read_history(plan.out / "log.jsonl");
  } else {
    if (interrupt_requested()) return std::nullopt;
    RecipeRun run = run_recipe(plan.recipe, run_options(options, plan));
    if (run.result.end == RunEnd::interrupted) {
      say("{}\n", stop_text(run.result, "the same command goes on"));
      return std::nullopt;
    }
    history = std::move(run.history);
  }
  SweptRun out{plan.recipe.seed, plan.out, last_metrics(history.rounds),
               verdict_of(plan.recipe, history)};
  if (out.verdict.trust == Trust::none) {
    say("{}: {}\n", plan.out.string(), trust_text(out.verdict));
  }
  return out;
}

// Of the score that is asked for, or of the first there is.
void write_figure(const SweepOptions& options, const std::vector<SweptCell>& cells) {
  std::vector<RunRecord> runs;
  std::vector<RunGroup> groups;
  for (const SweptCell& cell : cells) {
    RunGroup& group = groups.emplace_back(
        RunGroup{.name = cell.cell.overrides.empty() ? "recipe" : cell.cell.name(), .runs = {}});
    for (const SweptRun& run : cell.runs) {
      group.runs.push_back(runs.size());
      runs.push_back(read_run_record(run.out, "", 0));
    }
  }
  const std::vector<std::string> scores = scores_in(runs);
  if (scores.empty()) throw InputError("sweep: a picture needs scores, but no run has one");
  const std::string score = options.score.empty() ? scores.front() : options.score;
  if (std::find(scores.begin(), scores.end(), score) == scores.end()) {
    throw InputError(
        fmt::format("sweep: --score must be one of {}, but is {}", fmt::join(scores, ", "), score));
  }
  const ScoreStyle style = score_style(score);
  CurveFigure figure{
      .title = style.title,
      .note = cells.front().runs.size() > 1
                  ? fmt::format("mean ± 2 standard deviations, {} seeds", cells.front().runs.size())
                  : "one seed",
      .y_label = style.percent ? style.title + ", %" : style.title,
      .scale = style.percent ? 100.0 : 1.0,
      .curves = {}};
  for (const RunGroup& group : groups) {
    const MeanCurve curve = mean_curve(runs, group, score);
    figure.curves.push_back({.name = group.name, .mean = curve.mean, .deviation = curve.deviation});
  }
  const std::string text = draw_curves(figure);
  replace_file(options.figure, std::as_bytes(std::span(text)));
  say("{} is in {}\n", style.title, options.figure);
}

int sweep(const SweepOptions& options) {
  std::vector<GridKey> grid;
  for (const std::string& text : options.grid) grid.push_back(parse_grid_key(text));
  const std::vector<Cell> cells = cells_of(grid);
  const std::vector<std::vector<Plan>> plans = plans_of(options, cells);
  check_before_work(options, plans);
  const std::size_t all = cells.size() * plans.front().size();
  std::vector<SweptCell> done;
  std::size_t place = 0;
  for (std::size_t c = 0; c < cells.size(); ++c) {
    SweptCell& cell = done.emplace_back(SweptCell{cells[c], {}});
    for (const Plan& plan : plans[c]) {
      const auto run = swept(options, plan, fmt::format("{}/{}", ++place, all));
      if (!run) return 130;
      cell.runs.push_back(*run);
    }
  }
  const Json json = sweep_json(options.recipe, grid, done);
  const std::string text = json.dump(2) + "\n";
  replace_file(folder_of(options) / "sweep.json", std::as_bytes(std::span(text)));
  print_text("{}", options.json ? json.dump() + "\n" : sweep_text(done));
  if (cells.size() > 1 && plans.front().front().recipe.data.validation_fraction == 0) {
    say("these are scores of the held-out examples: settings that are chosen by them have seen "
        "them; "
        "--set data.validation_fraction=0.2 scores training examples that are left out instead\n");
  }
  if (!options.figure.empty()) write_figure(options, done);
  return 0;
}

}  // namespace

void add_sweep_command(Command& app, int& exit_code) {
  auto options = std::make_shared<SweepOptions>();  // shared: the callback outlives this function
  Command* command = app.add_subcommand(
      "sweep", "a recipe with every combination of some settings and seeds, in one table");
  command->add_option("recipe", options->recipe, "recipe file")->required();
  command
      ->add_option(
          "--grid", options->grid,
          "key=a,b,c: a setting as after --set, and its values; may be given several times")
      ->take_all();
  command->add_option("--seeds", options->seeds, "separated by commas; default the recipe's own")
      ->delimiter(',')
      ->check(whole_number(0));
  command->add_option("--set", options->set, "section.key=value, for all runs")->take_all();
  command->add_option("--rounds", options->rounds, "only the first so many rounds, for a trial")
      ->check(whole_number(1));
  command->add_option("--out", options->out, "folder of the runs; default run/sweep/<recipe>");
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--device", options->device, "where clients run: cpu or cuda");
  command->add_option("--precision", options->precision,
                      "products on a GPU: tf32, or float32 for agreement with the CPU");
  command->add_option("--threads", options->threads, "clients in parallel")
      ->check(whole_number(1, 1024));
  command->add_option("--figure", options->figure, "draw a score's curves into this SVG file");
  command->add_option("--score", options->score, "that the picture shows; default the first");
  command->add_flag("--json", options->json, "one line of JSON in place of the table");
  command->callback([options, &exit_code] { exit_code = sweep(*options); });
}

}  // namespace fedep
