#include "app/report/report_command.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <ranges>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "app/file_name.h"
#include "app/output.h"
#include "app/posterior/told_spread.h"
#include "app/report/report_build.h"
#include "app/report/told_coefficients.h"
#include "app/reproduce/result_curve.h"
#include "app/whole_number.h"
#include "fedep/message/error.h"
#include "fedep/page/figure/curve_figure.h"
#include "fedep/page/report/report.h"
#include "fedep/page/report/run_curves.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

void write_text(const fs::path& path, std::string_view text) {
  std::error_code ignored;  // what cannot be made shows when the file is written
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), ignored);
  replace_file(path, std::as_bytes(std::span(text)));
}

struct Shown {
  std::vector<RunRecord> runs;
  std::vector<std::string> notices;
  std::vector<RowName> rows;  // of these runs, where the request has them
};

void tell_only_inferred(const fs::path& path, RunRecord& run) {
  try {
    run.posterior = only_inferred(path, &run.history, std::exchange(run.posterior, std::nullopt));
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
}

void tell_coefficients(const fs::path& path, RunRecord& run) {
  try {
    run.coefficients = told_coefficients(path, run.recipe);
  } catch (const InputError& error) {
    run.faults.push_back(error.what());
  }
}

Shown read_runs(const ReportRequest& request) {
  const std::vector<fs::path>& paths = request.runs;
  Shown shown;
  std::optional<InputError> first;
  const std::vector<std::string> names = names_of(paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    try {
      RunRecord run = read_run_record(paths[i], names[i]);
      if (run.history.rounds.empty()) {
        const std::string why = run.faults.empty() ? "" : fmt::format(" ({})", run.faults.front());
        throw InputError(
            fmt::format("{}: run must have played a round, but has not{}", paths[i].string(), why));
      }
      tell_only_inferred(paths[i], run);
      tell_coefficients(paths[i], run);
      for (const std::string& fault : run.faults) {
        say("not shown of {}: {}\n", run.name, fault);
      }
      shown.runs.push_back(std::move(run));
      if (!request.rows.empty()) shown.rows.push_back(request.rows[i]);
    } catch (const InputError& error) {
      if (!first) first = error;
      shown.notices.push_back(error.what());
    }
  }
  if (shown.runs.empty() && first) throw *first;
  for (const std::string& notice : shown.notices) say("not shown: {}\n", notice);
  return shown;
}

// Rounds after which some group begins another phase.
std::vector<std::int64_t> switches_of(std::span<const RunRecord> runs) {
  std::vector<std::int64_t> rounds;
  for (const RunRecord& run : runs) {
    const std::vector<std::int64_t> own = switches_in(run.recipe);
    rounds.insert(rounds.end(), own.begin(), own.end());
  }
  std::ranges::sort(rounds);
  const auto again = std::ranges::unique(rounds);
  rounds.erase(again.begin(), again.end());
  return rounds;
}

bool has_marginal(const CurveFigure& figure) {
  return std::ranges::any_of(figure.curves, [](const FigureCurve& curve) {
    return std::ranges::any_of(curve.marginal, [](double value) { return std::isfinite(value); });
  });
}

std::string note_of(std::span<const RunGroup> groups, std::size_t window) {
  const auto [fewest, most] = std::ranges::minmax(
      groups | std::views::transform([](const RunGroup& group) { return group.runs.size(); }));
  std::string note = "one seed";
  if (most > 1) {
    note = fmt::format("mean ± 2 deviations, {}{} seeds",
                       fewest < most ? fmt::format("{} to ", fewest) : "", most);
  }
  if (window > 1) note += fmt::format(", means over {} rounds", window);
  return note;
}

// PREFIX-accuracy.svg and so on: one picture per score, as in the paper's Figures 2, 3, 5 and 7.
std::vector<fs::path> write_figures(std::span<const RunRecord> runs, const ReportRequest& request) {
  const std::vector<RunGroup> groups = group_by_seed(runs);
  std::vector<fs::path> files;
  bool any_marginal = false;
  std::vector<std::string> scores = scores_in(runs);
  if (request.score.empty()) std::erase(scores, "moved");  // no score, and seldom a curve
  if (!request.score.empty()) {
    if (std::find(scores.begin(), scores.end(), request.score) == scores.end()) {
      throw InputError(fmt::format("report: --score must be one of {}, but is {}",
                                   fmt::join(scores, ", "), request.score));
    }
    scores = {request.score};
  }
  for (const std::string& score : scores) {
    const ScoreStyle style = score_style(score);
    CurveFigure figure{.title = style.title,
                       .note = note_of(groups, request.window),
                       .y_label = style.percent ? style.title + ", %" : style.title,
                       .scale = style.percent ? 100.0 : 1.0,
                       .curves = {},
                       .switches = switches_of(runs)};
    for (const RunGroup& group : groups) {
      MeanCurve curve = mean_curve(runs, group, score, request.window);
      MeanCurve marginal;
      if (request.marginal) marginal = mean_curve(runs, group, marginal_name(score));
      figure.curves.push_back({group.name, std::move(curve.mean), std::move(curve.deviation),
                               std::move(marginal.mean)});
    }
    if (has_marginal(figure)) {
      any_marginal = true;
      figure.note += "; ◇ averaged over draws";
      if (request.window > 1) figure.note += ", of one round";
    }
    fs::path file = fmt::format("{}-{}.svg", request.figure, file_name_part(score));
    write_text(file, draw_curves(figure));
    files.push_back(std::move(file));
  }
  if (request.marginal && !any_marginal) {
    say("no run has scores averaged over draws (evaluate.samples), so the pictures show none\n");
  }
  return files;
}

}  // namespace

std::vector<fs::path> write_report(const ReportRequest& request) {
  if (request.runs.empty() && request.results.empty()) {
    throw InputError("report: a run directory or --results must be named, but none is");
  }
  if (request.figure.empty() && (request.marginal || request.window > 1)) {
    throw InputError(fmt::format("report: {} is for pictures and needs --figure, but there is none",
                                 request.marginal ? "--marginal" : "--window"));
  }
  if (!request.results.empty() && !fs::exists(request.results)) {
    throw InputError(
        fmt::format("{}: file with results must exist, but does not", request.results.string()));
  }
  if (!request.kept_tables.empty() && (request.results.empty() || request.figure.empty())) {
    throw InputError("report: --table needs --results and --figure, but one is not given");
  }
  Shown shown = read_runs(request);
  if (!request.figure.empty()) {
    ReportRequest figures = request;
    if (!request.kept_tables.empty()) {
      for (RunRecord& run :
           published_runs(request.results, request.kept_tables, request.kept_rows)) {
        // What is drawn beside ten-round means is averaged alike.
        figures.window = std::max(figures.window, std::size_t(run.recipe.evaluate.every));
        shown.runs.push_back(std::move(run));
      }
    }
    if (shown.runs.empty()) {
      throw InputError("report: --figure needs a run or --table, but none is named");
    }
    return write_figures(shown.runs, figures);
  }
  ReportParts parts{.notices = std::move(shown.notices), .rows = std::move(shown.rows)};
  if (!request.results.empty()) parts.results = read_results(request.results);
  if (shown.runs.empty() && parts.results.empty()) {
    throw InputError(
        fmt::format("{}: file must hold a result, but is empty", request.results.string()));
  }
  write_text(request.out, report_page(build_report(shown.runs, parts)));
  return {request.out};
}

void add_report_command(Command& app, int& exit_code) {
  const auto request = std::make_shared<ReportRequest>();
  Command* command =
      app.add_subcommand("report", "make one page of runs: curves, tables, calibration, posterior");
  command->add_option("run", request->runs, "run directories");
  command->add_option("--out", request->out, "the page; default report.html");
  command->add_option("--results", request->results,
                      "results.jsonl of fedep reproduce: paper, ours and difference too");
  command
      ->add_option("--figure", request->figure,
                   "pictures PREFIX-accuracy.svg and so on in place of the page")
      ->type_name("PREFIX");
  command->add_option("--window", request->window, "rounds that a point of a picture averages")
      ->check(whole_number(1, 100000));
  command->add_flag("--marginal", request->marginal,
                    "pictures show predictions averaged over draws too");
  command->add_option("--score", request->score, "only the picture of this score, as in log.jsonl");
  command
      ->add_option("--table", request->kept_tables,
                   "pictures of the runs that --results keeps of these tables, separated by commas")
      ->delimiter(',');
  command
      ->add_option("--rows", request->kept_rows,
                   "of --table: only these result rows, separated by commas")
      ->delimiter(',');
  command->callback([request, &exit_code] {
    for (const fs::path& file : write_report(*request)) print_bytes(file.string() + "\n");
    exit_code = 0;
  });
}

}  // namespace fedep
