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
#include "app/reproduce/plan_deal.h"
#include "app/reproduce/reproduce_check.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/interrupt.h"
#include "app/run/run_home.h"
#include "app/run/run_recipe.h"
#include "app/sweep/sweep_table.h"
#include "app/trust.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/fingerprint.h"
#include "fedep/message/error.h"
#include "fedep/page/figure/curve_figure.h"
#include "fedep/page/report/run_curves.h"
#include "fedep/sim/learning_task.h"
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
  std::string device = "cpu", precision = "tf32", scratch;
  std::size_t threads = 1;
  DealOptions deal;
  bool json = false;
};

fs::path folder_of(const SweepOptions& options) {
  if (!options.out.empty()) return options.out;
  return fs::path("run") / "sweep" / fs::path(options.recipe).stem();
}

// A run of each cell with each seed, cell after cell. All recipes are read before anything is played.
std::vector<Plan> plans_of(const SweepOptions& options, const std::vector<Cell>& cells) {
  std::vector<Plan> plans;
  for (const Cell& cell : cells) {
    std::vector<std::string> overrides = options.set;
    overrides.insert(overrides.end(), cell.overrides.begin(), cell.overrides.end());
    Recipe recipe = read_recipe(options.recipe, overrides);
    if (options.rounds) recipe = shortened(std::move(recipe), *options.rounds);
    std::vector<std::uint64_t> seeds = options.seeds;
    if (seeds.empty()) seeds.push_back(recipe.seed);
    for (const std::uint64_t seed : seeds) {
      recipe.seed = seed;
      const std::string name = cell.overrides.empty() ? "recipe" : cell.name();
      plans.push_back({.row = name,
                       .recipe = recipe,
                       .out = folder_of(options) /
                              file_name_part(fmt::format("{}", fmt::join(cell.overrides, "+"))) /
                              fmt::format("seed-{}", seed),
                       .shortened = options.rounds.has_value()});
    }
  }
  return plans;
}

void check_seeds(const std::vector<std::uint64_t>& seeds, std::span<const GridKey> grid) {
  if (!seeds.empty() && std::ranges::find(grid, "seed", &GridKey::key) != grid.end()) {
    throw InputError("sweep: seed must be a key of --grid or given by --seeds, but is both");
  }
  for (const std::uint64_t seed : seeds) {
    if (std::ranges::count(seeds, seed) < 2) continue;
    throw InputError(fmt::format("sweep: --seeds must name a seed once, but has {} twice", seed));
  }
}

// A plan's data as they are now; empty where they have no examples, or cannot be read.
std::string data_now(const SweepOptions& options, const Recipe& recipe) {
  try {
    return fmt::format("{:016x}", fingerprint(*open_task_data(recipe, data_folder(options.data))));
  } catch (const InputError&) {
    return {};
  }
}

// A table has means over runs, which must be of the same data. Throws InputError for a finished run of others.
void check_same_data(const SweepOptions& options, const std::vector<Plan>& finished) {
  struct Known {
    DataSettings data;
    std::uint64_t seed = 0;  // which examples are whose
    std::string now;
  };
  std::vector<Known> known;
  for (const Plan& plan : finished) {
    const Recipe& recipe = plan.recipe;
    auto found = std::ranges::find_if(known, [&](const Known& one) {
      return one.data == recipe.data && one.seed == recipe.seed;
    });
    if (found == known.end()) {
      found = known.insert(known.end(), {recipe.data, recipe.seed, data_now(options, recipe)});
    }
    const std::optional<RunHeader> header = read_history(plan.out / "log.jsonl").header;
    const std::string before = header ? header->data : "";
    if (before.empty() || found->now.empty() || before == found->now) continue;
    throw InputError(
        fmt::format("sweep: {} was played with data {}, which are {} now: they were changed since, "
                    "or --data names others; take the run away, or name another --out",
                    plan.out.string(), before, found->now));
  }
}

void check_before_work(const SweepOptions& options, const std::vector<Plan>& plans) {
  std::vector<Plan> finished, unfinished;
  for (const Plan& plan : plans) {
    (is_finished(plan.recipe, plan.out) ? finished : unfinished).push_back(plan);
    if (const auto differs = other_settings(plan.recipe, plan.out)) {
      throw InputError(fmt::format(
          "sweep: {} was played with other settings, {}: take the run away, or name another --out",
          plan.out.string(), *differs));
    }
    if (const auto further = further_than_asked(plan.recipe, plan.out)) {
      throw InputError(fmt::format("sweep: {} {}: take the run away, or name another --out",
                                   plan.out.string(), *further));
    }
  }
  check_same_data(options, finished);
  check_reproduce(unfinished,
                  {.table = "sweep", .data = data_folder(options.data), .device = options.device});
}

// What all runs are told.
RunRecipeOptions run_options(const SweepOptions& options) {
  return {.data = data_folder(options.data),
          .threads = options.threads,
          .device = options.device,
          .precision = options.precision,
          .mixed_cpus = options.deal.mixed_cpus,
          .scratch = options.scratch};
}

// Plays a run that is this process's, alone or with its group. False after a wish to stop; what was
// finished until then is kept.
bool play_plan(const SweepOptions& options, const Plan& plan, const PlanDeal& deal, bool resume) {
  if (deal.group() == nullptr && interrupt_requested()) return false;
  RunRecipeOptions how = run_options(options);
  how.out = plan.out;
  how.resume = resume;
  how.ranks = deal.group();
  const RecipeRun run = run_recipe(plan.recipe, how);
  if (run.result.end != RunEnd::interrupted) return true;
  say("{}\n", stop_text(run.result, "the same command goes on"));
  return false;
}

SweptRun swept(const Plan& plan) {
  const History history = read_history(plan.out / "log.jsonl");
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

int sweep(const SweepOptions& options, Ranks* ranks) {
  std::vector<GridKey> grid;
  for (const std::string& text : options.grid) grid.push_back(parse_grid_key(text));
  const std::vector<Cell> cells = cells_of(grid);
  check_seeds(options.seeds, grid);
  const std::vector<Plan> plans = plans_of(options, cells);
  check_device(options.device, options.precision, ranks != nullptr);
  check_scratch(options.scratch);
  if (ranks == nullptr || ranks->is_first()) check_before_work(options, plans);
  RunRecipeOptions how = run_options(options);
  how.ranks = ranks;
  PlanDeal deal(how, options.deal.ranks_per_run, plans);
  bool stopped = false;
  for (std::size_t i = 0; i < plans.size() && !stopped; ++i) {
    const PlanDeal::Found found = deal.is_mine(i) ? deal.find(plans[i]) : PlanDeal::Found{};
    say("[{}/{}] {}, seed {}: {}\n", i + 1, plans.size(), plans[i].row, plans[i].recipe.seed,
        !deal.is_mine(i) ? deal.players(i)
        : found.finished ? "finished already"
                         : plans[i].out.string());
    if (!deal.is_mine(i) || found.finished) continue;
    stopped = !deal.play(i, [&] { return play_plan(options, plans[i], deal, found.begun); });
  }
  const int ended = deal.wait_for_all(stopped);
  if (ended != 0 || !deal.speaks()) return ended;
  std::vector<SweptCell> done;
  const std::size_t seeds = plans.size() / cells.size();
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (i % seeds == 0) done.push_back({cells[i / seeds], {}});
    done.back().runs.push_back(swept(plans[i]));
  }
  const Json json = sweep_json(options.recipe, grid, done);
  const std::string text = json.dump(2) + "\n";
  replace_file(folder_of(options) / "sweep.json", std::as_bytes(std::span(text)));
  print_text("{}", options.json ? json.dump() + "\n" : sweep_text(done));
  if (cells.size() > 1 && plans.front().recipe.data.validation_fraction == 0) {
    say("these are scores of the held-out examples: settings that are chosen by them have seen "
        "them; "
        "--set data.validation_fraction=0.2 scores training examples that are left out instead\n");
  }
  if (!options.figure.empty()) write_figure(options, done);
  return 0;
}

}  // namespace

void add_sweep_command(Command& app, int& exit_code, const std::unique_ptr<Ranks>& ranks) {
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
  add_deal_options(*command, options->deal);
  add_scratch_option(*command, options->scratch);
  command->add_option("--figure", options->figure, "draw a score's curves into this SVG file");
  command->add_option("--score", options->score, "that the picture shows; default the first");
  command->add_flag("--json", options->json, "one line of JSON in place of the table");
  command->callback([options, &exit_code, &ranks] { exit_code = sweep(*options, ranks.get()); });
}

}  // namespace fedep
