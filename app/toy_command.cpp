#include "app/toy_command.h"

#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "app/output.h"
#include "app/whole_number.h"
#include "fedep/message/error.h"
#include "fedep/page/figure/toy_figure.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

std::string_view precision_of(const ToyOptions& options) {
  return options.float32 ? "float32" : "float64";
}

void write_picture(const std::filesystem::path& path, const std::string& content) {
  replace_file(path, std::as_bytes(std::span(content)));
}

ToyContours contours_of(const ToyIllustration& illustration) {
  const auto point = [](const Eigen::Vector2d& p) { return PlanePoint{p.x(), p.y()}; };
  ToyContours out{
      {}, point(illustration.exact), point(illustration.fed_avg), point(illustration.fed_pa), {}};
  for (const ToyClient& client : illustration.clients) {
    out.clients.push_back({{client.mean[0], client.mean[1]},
                           client.covariance(0, 0),
                           client.covariance(1, 1),
                           client.covariance(0, 1)});
  }
  for (const Eigen::Vector2d& p : illustration.path) out.path.push_back(point(p));
  return out;
}

void write_figures(const ToyOptions& options, const ToyResult& result) {
  const std::filesystem::path prefix(options.figure);
  if (const auto folder = prefix.parent_path(); !folder.empty()) {
    std::error_code error;
    std::filesystem::create_directories(folder, error);
    if (error) {
      throw RunError(
          fmt::format("toy: folder {} must be writable, but {}", folder.string(), error.message()));
    }
  }
  const std::string contours = options.figure + "-contours.svg";
  const std::string distance = options.figure + "-distance.svg";
  write_picture(contours, draw_toy_contours(contours_of(illustrate_toy())));
  write_picture(distance, draw_toy_distances({result.fed_avg.by_round, result.fed_pa.by_round,
                                              result.fed_ep.by_round,
                                              result.fed_ep_identity.by_round, options.trials}));
  say("wrote {} and {}\n", contours, distance);
}

}  // namespace

std::string toy_json(const ToyOptions& options, const ToyResult& result) {
  using Json = nlohmann::ordered_json;
  const auto method = [](const ToyDistance& d) {
    return Json{{"mean", d.mean}, {"std", d.std}, {"median", d.median}};
  };
  const Json json{{"fed_avg", method(result.fed_avg)},
                  {"fed_pa", method(result.fed_pa)},
                  {"fed_ep", method(result.fed_ep)},
                  {"fed_ep_identity", method(result.fed_ep_identity)},
                  {"trials", options.trials},
                  {"steps", options.steps},
                  {"seed", options.seed},
                  {"precision", precision_of(options)}};
  return json.dump() + "\n";
}

std::string toy_table(const ToyOptions& options, const ToyResult& result) {
  std::string out = fmt::format(
      "Distance from the estimated to the exact global mean, over {} trials ({} steps, seed {}, "
      "{})\n\n{:<24}{:>9}   {:<9}{:>10}   {}\n",
      options.trials, options.steps, options.seed, precision_of(options), "method", "mean", "std",
      "median", "paper (Table 4: 200 trials, float32)");
  const auto row = [&](std::string_view name, const ToyDistance& d, std::string_view paper) {
    out += fmt::format("{:<24}{:>9.2e} ± {:<9.2e}{:>10.2e}   {}\n", name, d.mean, d.std, d.median,
                       paper);
  };
  row("FedAvg", result.fed_avg, "5.4e-01 ± 4.7e-01");
  row("FedPA", result.fed_pa, "2.6e-01 ± 2.6e-01");
  row("FedEP", result.fed_ep, "1.1e-07 ± 9.8e-08");
  row("FedEP, scaled identity", result.fed_ep_identity, "(a curve in Fig. 4)");
  return out;
}

int toy_command(const ToyOptions& options) {
  const ToyResult result = run_toy_experiment({.trials = options.trials,
                                               .steps = options.steps,
                                               .seed = options.seed,
                                               .float32 = options.float32});
  if (!options.figure.empty()) write_figures(options, result);
  print_text("{}", options.json ? toy_json(options, result) : toy_table(options, result));
  return 0;
}

void add_toy_command(Command& app, int& exit_code) {
  // Shared, because the callback below outlives this function.
  const auto options = std::make_shared<ToyOptions>();
  Command* toy = app.add_subcommand(
      "toy", "The paper's toy experiment: FedAvg, FedPA and FedEP on two Gaussian clients");
  toy->add_option("--trials", options->trials, "Random pairs of clients")->capture_default_str();
  toy->add_option("--steps", options->steps, "EP steps in a trial")->capture_default_str();
  toy->add_option("--seed", options->seed, "Seed of the clients")
      ->capture_default_str()
      ->check(whole_number(0, std::numeric_limits<std::uint64_t>::max()));
  toy->add_flag("--float32", options->float32, "Compute in float32, as the paper did");
  toy->add_flag("--json", options->json, "Print one line of JSON in place of the table");
  toy->add_option("--figure", options->figure, "Write PREFIX-contours.svg and PREFIX-distance.svg")
      ->type_name("PREFIX");
  toy->callback([options, &exit_code] { exit_code = toy_command(*options); });
}

}  // namespace fedep
