#include "app/reproduce/reproduce_command.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "app/output.h"
#include "app/report/report_command.h"
#include "app/reproduce/comparison.h"
#include "app/reproduce/finished_run.h"
#include "app/reproduce/paper_tables.h"
#include "app/reproduce/plan_deal.h"
#include "app/reproduce/reproduce_check.h"
#include "app/reproduce/reproduce_plan.h"
#include "app/reproduce/result_curve.h"
#include "app/reproduce/result_pages.h"
#include "app/reproduce/results.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/interrupt.h"
#include "app/run/last_evaluation.h"
#include "app/run/run_home.h"
#include "app/run/run_recipe.h"
#include "app/trust.h"
#include "app/version.h"
#include "app/whole_number.h"
#include "fedep/message/error.h"
#include "fedep/page/report/run_record.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

struct ReproduceOptions {
  PlanOptions plan;
  std::string device = "cpu";
  std::string precision = "tf32";
  std::size_t threads = 1;
  DealOptions deal;
  std::string scratch;
  std::string data;
  std::string results;
  std::string readme;
  std::string report;
  std::string burn_in;  // empty: beside the runs
  bool no_shared_burn_in = false;
};

bool is_finished(const Plan& plan) { return is_finished(plan.recipe, plan.out); }

// Tables share it too, where their runs are not put elsewhere.
fs::path burn_in_folder(const ReproduceOptions& options) {
  if (options.no_shared_burn_in) return {};
  if (!options.burn_in.empty()) return options.burn_in;
  return (options.plan.out.empty() ? fs::path("run") : fs::path(options.plan.out)) / "burn-in";
}

// What all runs are told.
RunRecipeOptions run_options(const ReproduceOptions& options) {
  return {.data = data_folder(options.data),
          .threads = options.threads,
          .device = options.device,
          .precision = options.precision,
          .mixed_cpus = options.deal.mixed_cpus,
          .scratch = options.scratch,
          .burn_in = burn_in_folder(options)};
}

RunRecipeOptions run_options(const ReproduceOptions& options, const Plan& plan) {
  RunRecipeOptions how = run_options(options);
  how.out = plan.out;
  how.keep_after = plan.keep_after;
  return how;
}

Result result_of(const ReproduceOptions& options, const Plan& plan, const History& history,
                 bool played_now, Ranks* ranks = nullptr) {
  const RunSummary summary = summary_of(history);
  RunRecipeOptions own = run_options(options, plan);
  own.ranks = ranks;
  const PaperTable* table = find_paper_table(options.plan.table);
  return {.table = options.plan.table,
          .row = plan.row,
          .seed = plan.recipe.seed,
          .rounds = summary.rounds,
          .metrics = table != nullptr
                         ? table_metrics(*table, history.rounds, plan.recipe.evaluate.every)
                         : last_metrics(history.rounds),
          .seconds = summary.seconds,
          .refused_rounds = summary.refused_rounds,
          .device = played_now ? device_text(own) : summary.device,
          .date = date_of(plan.out / "log.jsonl"),  // when the run ended
          .version = played_now ? version_text() : summary.version,
          .curve = curve_of_run(history.rounds, plan.recipe,
                                curve_scores(options.plan.table, history.rounds))};
}

fs::path results_file(const ReproduceOptions& options) {
  return options.results.empty() ? "result/results.jsonl" : options.results;
}

// Where a run went on with another evaluate.every.
void tell_uneven_scores(const Plan& plan, const History& history) {
  const int every = plan.recipe.evaluate.every;
  if (every <= 0 || is_scored_every(history.rounds, every)) return;
  say("{}: not every round that evaluate.every = {} names is scored, so there are no running "
      "means and no rounds to a threshold\n",
      (plan.out / "log.jsonl").string(), every);
}

// The rows that follow are played all the same, and the page has this one in red.
void tell_distrust(const Plan& plan, const History& history) {
  const Verdict verdict = verdict_of(plan.recipe, history);
  if (verdict.trust == Trust::none) say("{}: {}\n", plan.out.string(), trust_text(verdict));
}

// The paper's rows have runs of full length.
bool adds_result(const ReproduceOptions& options, const Plan& plan) {
  return !plan.shortened || !options.results.empty();
}

void keep(const ReproduceOptions& options, const Plan& plan, const Result& result,
          bool played_now) {
  const fs::path file = results_file(options);
  if (!adds_result(options, plan)) {
    say("only {} rounds: not added to {}; --results FILE adds it to FILE\n", result.rounds,
        file.string());
    return;
  }
  if (options.results.empty()) fs::create_directories(file.parent_path());
  // A run that was over before may have been killed just before its line was written.
  if (played_now) return append_result(file, result);
  append_result_if_missing(file, result);
}

// A run that was killed right after its log's last line. Its row is whole without this file, which
// only the page reads.
void restore_evaluation_of(const ReproduceOptions& options, const Plan& plan) {
  if (!lacks_evaluation(plan.out)) return;
  const std::string file = (plan.out / "evaluation.json").string();
  try {
    restore_evaluation(plan.recipe, run_options(options, plan));
    say("{} was missing, and is written from the last checkpoint\n", file);
  } catch (const InputError& error) {
    say("{} is missing and cannot be written: {}\n", file, error.what());
  }
}

// Table 5's runs are Table 2's, and rows of both; a run of Table 2 that stands in for a row of Table
// 8 is that row.
RowName row_on_page(const ReproduceOptions& options, const Plan& plan) {
  const PaperTable* table = find_paper_table(options.plan.table);
  const bool is_read_off = table != nullptr && table->runs_of == plan.recipe.table;
  return {is_read_off ? plan.recipe.table : options.plan.table, plan.row};
}

void check_before_work(const ReproduceOptions& options, const std::vector<Plan>& plans) {
  ReproduceInputs inputs{.table = options.plan.table,
                         .makes_results_folder = options.results.empty(),
                         .report = options.report,
                         .readme = options.readme,
                         .data = data_folder(options.data),
                         .device = options.device};
  std::vector<Plan> unfinished;
  for (const Plan& plan : plans) {
    if (!is_finished(plan)) unfinished.push_back(plan);
    if (adds_result(options, plan)) inputs.results = results_file(options);
  }
  if (inputs.results.empty()) read_results(results_file(options));  // as a page and a README do
  check_reproduce(unfinished, inputs);
}

// Of a run that is over: told of, and kept.
Result take_result(const ReproduceOptions& options, const Plan& plan, const History& history,
                   bool played_now, Ranks* ranks) {
  tell_uneven_scores(plan, history);
  tell_distrust(plan, history);
  const Result result = result_of(options, plan, history, played_now, ranks);
  keep(options, plan, result, played_now);
  return result;
}

Result read_result(const ReproduceOptions& options, const Plan& plan) {
  restore_evaluation_of(options, plan);
  return take_result(options, plan, read_history(plan.out / "log.jsonl"), false, nullptr);
}

// Plays a run that is this process's, alone or with its group, and where it leads gives the result.
// False after a wish to stop.
bool play_plan(const ReproduceOptions& options, const Plan& plan, const PlanDeal& deal, bool resume,
               std::optional<Result>& result) {
  if (deal.group() == nullptr && interrupt_requested()) return false;  // in the last round before
  RunRecipeOptions how = run_options(options, plan);
  how.ranks = deal.group();
  how.resume = resume;
  const RecipeRun run = run_recipe(plan.recipe, how);
  if (run.result.end == RunEnd::interrupted) {
    say("{}\n", stop_text(run.result, "the same command goes on"));
    return false;
  }
  // Other settings of scores and checkpoints need no round.
  const bool played = run.result.played > 0;
  if (deal.leads()) result = take_result(options, plan, run.history, played, deal.group());
  return true;
}

// Exit code 130 after Ctrl-C; what was finished until then is kept.
int run_plans(const ReproduceOptions& options, Ranks* ranks) {
  check_device(options.device, options.precision, ranks != nullptr);
  check_scratch(options.scratch);
  const std::vector<Plan> plans = plan_of(options.plan);
  if (ranks == nullptr || ranks->is_first()) check_before_work(options, plans);
  RunRecipeOptions how = run_options(options);
  how.ranks = ranks;
  PlanDeal deal(how, options.deal.ranks_per_run, plans);
  std::vector<std::optional<Result>> taken(plans.size());
  bool stopped = false;
  for (std::size_t i = 0; i < plans.size() && !stopped; ++i) {
    const Plan& plan = plans[i];
    const PlanDeal::Found found = deal.is_mine(i) ? deal.find(plan) : PlanDeal::Found{};
    say("[{}/{}] {} {}, seed {}, {} rounds: {}\n", i + 1, plans.size(), options.plan.table,
        plan.row, plan.recipe.seed, rounds_of(plan.recipe),
        !deal.is_mine(i) ? deal.players(i)
        : found.finished ? "finished already"
                         : plan.out.string());
    if (!deal.is_mine(i)) continue;
    stopped = !deal.play(i, [&] {
      if (!found.finished) return play_plan(options, plan, deal, found.begun, taken[i]);
      if (deal.leads()) taken[i] = read_result(options, plan);
      return true;
    });
  }
  const int ended = deal.wait_for_all(stopped);
  if (ended != 0 || !deal.speaks()) return ended;
  std::vector<Result> results;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (!taken[i]) {
      results.push_back(read_result(options, plans[i]));
      continue;
    }
    results.push_back(*taken[i]);
    // Without locks another rank may have cut it off.
    if (ranks != nullptr && adds_result(options, plans[i])) {
      append_result_if_missing(results_file(options), *taken[i]);
    }
  }
  print_text("{}", comparison(options.plan.table, results, true));
  if (!options.report.empty()) {
    ReportRequest request{.runs = {}, .out = options.report};
    for (const Plan& plan : plans) {
      request.runs.push_back(plan.out);
      request.rows.push_back(row_on_page(options, plan));
    }
    if (fs::exists(results_file(options))) request.results = results_file(options);
    write_report(request);
  }
  return 0;
}

void write_tables(const ReproduceOptions& options) {
  for (const std::string& table :
       write_pages(options.readme, read_results(results_file(options)))) {
    say("{} has no place <!-- {} --> for the results of that table\n", options.readme, table);
  }
}

int reproduce(const ReproduceOptions& options, Ranks* ranks) {
  if (options.plan.table.empty() && options.readme.empty()) {
    throw InputError("reproduce: a table such as table2 must be named, but none is");
  }
  int exit_code = 0;
  if (!options.plan.table.empty()) exit_code = run_plans(options, ranks);
  const bool speaks = ranks == nullptr || ranks->is_first();
  if (exit_code == 0 && speaks && !options.readme.empty()) write_tables(options);
  return exit_code;
}

}  // namespace

void add_reproduce_command(Command& app, int& exit_code, const std::unique_ptr<Ranks>& ranks) {
  auto options = std::make_shared<ReproduceOptions>();
  Command* command = app.add_subcommand(
      "reproduce", "run a table of the paper and print paper | ours | difference");
  command->add_option("table", options->plan.table,
                      "table2, figure4, …: recipes whose `table` it is");
  command->add_option("--rows", options->plan.rows, "only these result rows, separated by commas")
      ->delimiter(',');
  command
      ->add_option("--seeds", options->plan.seeds, "separated by commas; default each recipe's own")
      ->delimiter(',')
      ->check(whole_number(0));
  command
      ->add_option("--rounds", options->plan.rounds, "only the first so many rounds, for a trial")
      ->check(whole_number(1));
  command->add_option("--device", options->device, "where clients run: cpu or cuda");
  command->add_option("--precision", options->precision,
                      "products on a GPU: tf32, or float32 for agreement with the CPU");
  command->add_option("--threads", options->threads, "clients in parallel")
      ->check(whole_number(1, 1024));
  add_deal_options(*command, options->deal);
  add_scratch_option(*command, options->scratch);
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--recipes", options->plan.recipes,
                      "folder with recipes, in it or in folders below; default recipe");
  command->add_option("--out", options->plan.out,
                      "folder of the run directories; default run/<table>");
  command->add_option(
      "--burn-in", options->burn_in,
      "folder of the burn-in rounds that result rows share; default burn-in in --out's "
      "folder, or run/burn-in");
  command->add_flag("--no-shared-burn-in", options->no_shared_burn_in,
                    "every result row plays all of its rounds itself");
  command->add_option(
      "--results", options->results,
      "file that finished runs are added to; default result/results.jsonl, for runs "
      "of full length");
  command->add_option("--readme", options->readme,
                      "write the results' tables into this page, or into the pages (.md) of this "
                      "folder, between <!-- table2 --> and <!-- end -->");
  command->add_option("--report", options->report,
                      "write a page of these runs, and of all results, to this file");
  command->callback(
      [options, &exit_code, &ranks] { exit_code = reproduce(*options, ranks.get()); });
}

}  // namespace fedep
