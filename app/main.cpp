// The command line. Results go to stdout, everything else to stderr.
// Exit codes: 0 done, 1 failed while running, 2 bad usage or input, 130 interrupted and resumable.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "app/bench/bench_command.h"
#include "app/data/data_command.h"
#include "app/list_command.h"
#include "app/posterior/coefficients_command.h"
#include "app/posterior/evaluate_command.h"
#include "app/posterior/export_command.h"
#include "app/posterior/predict_command.h"
#include "app/report/report_command.h"
#include "app/reproduce/compare_command.h"
#include "app/reproduce/reproduce_command.h"
#include "app/run/run_command.h"
#include "app/toy_command.h"
#include "app/version.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/sim/process.h"

namespace {

constexpr int kFailed = 1;
constexpr int kBadInput = 2;

int fail(std::string_view what, int code) {
  fmt::print(stderr, "fedep: {}\n", what);
  return code;
}

// CLI11 would only say that a command is required.
void check_command(CLI::App& app, std::string_view first) {
  const bool is_option = first.starts_with('-');
  std::vector<std::string_view> known;
  if (is_option) {
    if (app.get_option_no_throw(std::string(first)) != nullptr) return;
    known = {"--help", "--version"};
  } else {
    for (const CLI::App* command : app.get_subcommands([](CLI::App*) { return true; })) {
      if (command->get_name() == first) return;
      known.push_back(command->get_name());
    }
  }
  throw fedep::InputError(fedep::unknown_name(is_option ? "option" : "command", first, known));
}

int refuse_usage(const CLI::App& app, const CLI::ParseError& error) {
  std::string command = "fedep";
  for (const CLI::App* chosen : app.get_subcommands()) command += " " + chosen->get_name();
  return fail(fmt::format("{}; see {} --help", error.what(), command), kBadInput);
}

// Results that are lost on their way out, to a full disk for instance, are not a success.
void flush_results() {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw fedep::RunError(fmt::format("standard output: cannot write: {}", std::strerror(errno)));
  }
}

}  // namespace

int main(int argc, char** argv) {
  fedep::prepare_process();
  CLI::App app("Federated learning as Bayesian inference, by expectation propagation.", "fedep");
  app.set_version_flag("--version", fmt::format("fedep {} ({}; {})", fedep::version_text(),
                                                fedep::build_text(), fedep::machine_text()));
  app.require_subcommand(1);
  int exit_code = 0;
  fedep::add_toy_command(app, exit_code);
  fedep::add_check_command(app, exit_code);
  fedep::add_run_command(app, exit_code);
  fedep::add_compare_command(app, exit_code);
  fedep::add_report_command(app, exit_code);
  fedep::add_reproduce_command(app, exit_code);
  fedep::add_evaluate_command(app, exit_code);
  fedep::add_predict_command(app, exit_code);
  fedep::add_export_command(app, exit_code);
  fedep::add_bench_command(app, exit_code);
  fedep::add_coefficients_command(app, exit_code);
  fedep::add_data_command(app, exit_code);
  fedep::add_list_command(app, exit_code);
  try {
    if (argc > 1) check_command(app, argv[1]);
    app.parse(argc, argv);
    flush_results();
    return exit_code;
  } catch (const CLI::Success& request) {  // --help, --version
    return app.exit(request);
  } catch (const CLI::ParseError& error) {
    return refuse_usage(app, error);
  } catch (const std::invalid_argument& error) {
    return fail(error.what(), kBadInput);
  } catch (const std::exception& error) {
    return fail(error.what(), kFailed);
  }
}
