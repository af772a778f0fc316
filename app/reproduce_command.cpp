#include "app/reproduce_command.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "app/comparison.h"
#include "app/interrupt.h"
#include "app/paper_tables.h"
#include "app/report_command.h"
#include "app/results.h"
#include "app/run_recipe.h"
#include "app/table_metrics.h"
#include "app/version.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/round/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

struct ReproduceOptions {
  std::string table;
  std::vector<std::string> rows;
  std::vector<std::uint64_t> seeds;  // none: each recipe's own
  std::optional<std::int64_t> rounds;
  std::string device = "cpu";
  std::string precision = "tf32";
  std::size_t threads = 1;
  std::string data;
  std::string recipes = "recipe";
  std::string out;
  std::string results;
  std::string readme;
  std::string report;
};

// A row, played with one seed.
struct Plan {
  Recipe recipe;
  fs::path out;
  bool shortened = false;
};

std::vector<std::string_view> views(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

bool holds(const std::vector<std::string>& texts, std::string_view text) {
  return std::find(texts.begin(), texts.end(), text) != texts.end();
}

std::vector<fs::path> recipe_files(const fs::path& folder) {
  if (!fs::is_directory(folder)) {
    throw InputError(
        fmt::format("{}: folder with recipes must exist, but does not; name it with --recipes",
                    folder.string()));
  }
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".toml") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// The recipes of a table. Table 5 is read off Table 2's runs, so it has none of its own.
std::vector<Recipe> recipes_of(const ReproduceOptions& options) {
  std::vector<Recipe> own, shared;
  std::vector<std::string> tables;
  const PaperTable* table = find_paper_table(options.table);
  for (const fs::path& file : recipe_files(options.recipes)) {
    const Recipe recipe = read_recipe(file);
    if (recipe.table.empty()) continue;
    if (recipe.row.empty()) {
      throw InputError(
          fmt::format("{}: a recipe with a table needs a row too, but has none", file.string()));
    }
    if (!holds(tables, recipe.table)) tables.push_back(recipe.table);
    const bool is_own = recipe.table == options.table;
    if (!is_own && (table == nullptr || recipe.table != table->runs_of)) continue;
    std::vector<Recipe>& list = is_own ? own : shared;
    for (const Recipe& other : list) {
      if (other.row != recipe.row) continue;
      throw InputError(fmt::format("{}: row {} of {} must be in one recipe, but is in another too",
                                   file.string(), shown(recipe.row), shown(recipe.table)));
    }
    list.push_back(recipe);
  }
  if (!own.empty()) return own;
  if (!shared.empty()) return shared;
  if (const auto command = shown_elsewhere(options.table); !command.empty()) {
    throw InputError(fmt::format("{} has no recipes: it is shown by {}", options.table, command));
  }
  throw InputError(unknown_name("table", options.table, views(tables)));
}

std::vector<Plan> plan_of(const ReproduceOptions& options) {
  std::vector<Plan> plans;
  std::vector<std::string> rows;
  for (const Recipe& recipe : recipes_of(options)) {
    rows.push_back(recipe.row);
    if (!options.rows.empty() && !holds(options.rows, recipe.row)) continue;
    const std::vector<std::uint64_t> own_seed{recipe.seed};
    for (const std::uint64_t seed : options.seeds.empty() ? own_seed : options.seeds) {
      Plan plan{.recipe = recipe, .out = {}};
      plan.recipe.seed = seed;
      std::string name = fmt::format("{}-seed{}", recipe.row, seed);
      if (options.rounds && *options.rounds < rounds_of(recipe)) {
        plan.shortened = true;
        plan.recipe = shortened(plan.recipe, *options.rounds);
        name += fmt::format("-{}rounds", *options.rounds);
      }
      const fs::path folder =
          options.out.empty() ? fs::path("run") / recipe.table : fs::path(options.out);
      plan.out = folder / name;
      plans.push_back(std::move(plan));
    }
  }
  for (const std::string& row : options.rows) {
    if (!holds(rows, row)) {
      throw InputError(unknown_name("row of " + options.table, row, views(rows)));
    }
  }
  return plans;
}

bool is_begun(const Plan& plan) { return fs::exists(plan.out / "recipe.toml"); }

bool is_finished(const Plan& plan) {
  if (!is_begun(plan) || !fs::exists(plan.out / "log.jsonl")) return false;
  if (!(read_recipe(plan.out / "recipe.toml") == plan.recipe)) return false;
  const RunSummary summary = summary_of(read_log(plan.out / "log.jsonl"));
  return summary.finished && summary.rounds == rounds_of(plan.recipe);
}

// When the log was last written, so when the run ended.
std::string date_of(const fs::path& log) {
  const auto time = std::chrono::file_clock::to_sys(fs::last_write_time(log));
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(time.time_since_epoch());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time_t(seconds.count())));
}

RunRecipeOptions run_options(const ReproduceOptions& options, const Plan& plan) {
  return {.out = plan.out,
          .data = data_folder(options.data),
          .threads = options.threads,
          .resume = is_begun(plan),
          .device = options.device,
          .precision = options.precision};
}

Result result_of(const ReproduceOptions& options, const Plan& plan, bool played_now) {
  const fs::path path = plan.out / "log.jsonl";
  const std::vector<Json> log = read_log(path);
  const RunSummary summary = summary_of(log);
  const PaperTable* table = find_paper_table(options.table);
  return {.table = options.table,
          .row = plan.recipe.row,
          .seed = plan.recipe.seed,
          .rounds = summary.rounds,
          .metrics = table != nullptr ? table_metrics(*table, log, plan.recipe.evaluate.every)
                                      : last_metrics(log),
          .seconds = summary.seconds,
          .device = played_now ? device_text(run_options(options, plan)) : summary.device,
          .date = date_of(path),
          .version = played_now ? version_text() : summary.version};
}

bool has_line(const std::vector<Result>& results, const Result& result) {
  return std::any_of(results.begin(), results.end(), [&](const Result& other) {
    return other.table == result.table && other.row == result.row && other.seed == result.seed &&
           other.rounds == result.rounds;
  });
}

fs::path results_file(const ReproduceOptions& options) {
  return options.results.empty() ? fs::path(options.recipes) / "results.jsonl"
                                 : fs::path(options.results);
}

void keep(const ReproduceOptions& options, const Plan& plan, const Result& result,
          bool played_now) {
  const fs::path file = results_file(options);
  if (plan.shortened && options.results.empty()) {
    fmt::print(stderr, "only {} rounds: not added to {}; --results FILE adds it to FILE\n",
               result.rounds, file.string());
    return;
  }
  // A run that was over before may have been killed just before its line was written.
  if (!played_now && has_line(read_results(file), result)) return;
  append_result(file, result);
}

// Exit code 130 after Ctrl-C; what was finished until then is kept.
int run_plans(const ReproduceOptions& options) {
  check_device(options.device, options.precision);
  read_results(results_file(options));  // to refuse a bad file before days of work
  const std::vector<Plan> plans = plan_of(options);
  std::vector<Result> results;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    const Plan& plan = plans[i];
    const bool finished = is_finished(plan);
    fmt::print(stderr, "[{}/{}] {} {}, seed {}, {} rounds: {}\n", i + 1, plans.size(),
               options.table, plan.recipe.row, plan.recipe.seed, rounds_of(plan.recipe),
               finished ? "finished already" : plan.out.string());
    if (!finished) {
      if (interrupt_requested()) return 130;  // in the last round of the run before
      const RunResult run = run_recipe(plan.recipe, run_options(options, plan));
      if (run.end == RunEnd::interrupted) {
        fmt::print(stderr, "stopped after round {}; the same command goes on\n", run.state.round);
        return 130;
      }
    }
    results.push_back(result_of(options, plan, !finished));
    keep(options, plan, results.back(), !finished);
  }
  fmt::print("{}", comparison(options.table, results, true));
  if (!options.report.empty()) {
    ReportRequest request{.runs = {}, .out = options.report};
    for (const Plan& plan : plans) request.runs.push_back(plan.out);
    if (fs::exists(results_file(options))) request.results = results_file(options);
    write_report(request);
  }
  return 0;
}

std::string text_of(const fs::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

void write_readme(const ReproduceOptions& options) {
  const std::vector<Result> results = read_results(results_file(options));
  const std::vector<std::string> tables = tables_of(results);
  std::string text = "# Results\n";
  if (fs::exists(options.readme)) {
    text = text_of(options.readme);
  } else {
    for (const std::string& name : tables) {
      text += fmt::format("\n## {0}\n\n<!-- {0} -->\n<!-- end -->\n", name);
    }
  }
  for (const std::string& name : tables) {
    if (text.find(fmt::format("<!-- {} -->", name)) == text.npos) {
      fmt::print(stderr, "{} has no place <!-- {} --> for the results of that table\n",
                 options.readme, name);
    }
  }
  text = with_tables(text, results, options.readme);
  replace_file(options.readme, std::as_bytes(std::span(text)));
}

int reproduce(const ReproduceOptions& options) {
  if (options.table.empty() && options.readme.empty()) {
    throw InputError("reproduce: a table such as table2 must be named, but none is");
  }
  int exit_code = 0;
  if (!options.table.empty()) exit_code = run_plans(options);
  if (exit_code == 0 && !options.readme.empty()) write_readme(options);
  return exit_code;
}

}  // namespace

void add_reproduce_command(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<ReproduceOptions>();
  CLI::App* command = app.add_subcommand(
      "reproduce", "run a table of the paper and print paper | ours | difference");
  command->add_option("table", options->table, "table2, figure4, …: recipes whose `table` it is");
  command->add_option("--rows", options->rows, "only these rows, separated by commas")
      ->delimiter(',');
  command->add_option("--seeds", options->seeds, "separated by commas; default each recipe's own")
      ->delimiter(',')
      ->check(whole_number(0));
  command->add_option("--rounds", options->rounds, "only the first so many rounds, for a trial")
      ->check(whole_number(1));
  command->add_option("--device", options->device, "where clients run: cpu or cuda");
  command->add_option("--precision", options->precision,
                      "products on a GPU: tf32, or float32 for agreement with the CPU");
  command->add_option("--threads", options->threads, "clients in parallel")
      ->check(whole_number(1, 1024));
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--recipes", options->recipes, "folder with recipes; default recipe");
  command->add_option("--out", options->out, "folder of the run directories; default run/<table>");
  command->add_option("--results", options->results,
                      "file that finished runs are added to; default results.jsonl beside the "
                      "recipes, for runs of full length");
  command->add_option("--readme", options->readme,
                      "write the results' tables into this file, between <!-- table2 --> and "
                      "<!-- end -->");
  command->add_option("--report", options->report,
                      "write a page of these runs, and of all results, to this file");
  command->callback([options, &exit_code] { exit_code = reproduce(*options); });
}

}  // namespace fedep
