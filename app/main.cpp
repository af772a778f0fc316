// The command line. Results go to stdout, everything else to stderr.
// Exit codes: 0 done, 1 failed while running, 2 bad usage or input, 3 finished, but the run is not to
// be trusted, 130 interrupted and resumable, 141 when what reads the results has gone.
#include <exception>
#include <memory>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "app/bench/bench_command.h"
#include "app/command.h"
#include "app/data/data_command.h"
#include "app/failure.h"
#include "app/list_command.h"
#include "app/output.h"
#include "app/posterior/coefficients_command.h"
#include "app/posterior/coverage_command.h"
#include "app/posterior/evaluate_command.h"
#include "app/posterior/export_command.h"
#include "app/posterior/predict_command.h"
#include "app/printable.h"
#include "app/ranks.h"
#include "app/report/report_command.h"
#include "app/reproduce/compare_command.h"
#include "app/reproduce/reproduce_command.h"
#include "app/run/run_command.h"
#include "app/sweep/sweep_command.h"
#include "app/toy_command.h"
#include "app/version.h"
#include "fedep/message/error.h"
#include "fedep/sim/process.h"
#include "fedep/sim/ranks/check_sums.h"

namespace {

constexpr int kNobodyReads = 141;  // as a shell calls what SIGPIPE ends

int fail(std::string_view what, int code) {
  fedep::say("fedep: {}\n", fedep::printable(what));
  return code;
}

}  // namespace

int main(int argc, char** argv) {
  fedep::keep_standard_streams();
  fedep::prepare_process();
  fedep::Command app("Federated learning as Bayesian inference, by expectation propagation.",
                     "fedep");
  app.set_version_flag("--version", fmt::format("fedep {} ({}; {})", fedep::version_text(),
                                                fedep::build_text(), fedep::machine_text()));
  app.require_subcommand();
  int exit_code = 0;
  std::unique_ptr<fedep::Ranks> ranks;  // null: nobody else plays along
  fedep::add_toy_command(app, exit_code);
  fedep::add_check_command(app, exit_code);
  fedep::add_run_command(app, exit_code, ranks);
  fedep::add_compare_command(app, exit_code);
  fedep::add_report_command(app, exit_code);
  fedep::add_reproduce_command(app, exit_code, ranks);
  fedep::add_sweep_command(app, exit_code, ranks);
  fedep::add_evaluate_command(app, exit_code);
  fedep::add_predict_command(app, exit_code);
  fedep::add_export_command(app, exit_code);
  fedep::add_bench_command(app, exit_code);
  fedep::add_coefficients_command(app, exit_code);
  fedep::add_coverage_command(app, exit_code);
  fedep::add_data_command(app, exit_code);
  fedep::add_list_command(app, exit_code);
  try {
    ranks = fedep::join_ranks(argc > 1 ? argv[1] : "");
    if (ranks) fedep::check_sums(*ranks, *ranks);
    app.parse(argc, argv);
    fedep::flush_results();  // lost on their way out, results are not a success
    return exit_code;
  } catch (const fedep::ReaderGone&) {
    return kNobodyReads;
  } catch (...) {
    const fedep::Failure failure = fedep::failure_of(std::current_exception());
    if (ranks) fedep::end_ranks(*ranks, failure);
    return fail(failure.line, failure.exit_code);
  }
}
