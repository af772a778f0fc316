// Prints a posterior of pooled rows (pooled_posterior.h) as one line of JSON, for simulations that are
// driven from outside (test/intervals).
//
//   bin/pooled_posterior rows.txt logistic 11.1 1 5000 7        rows: numbers, the outcome last; prior
//                                                               precision, noise, draws of each chain, seed
//   FEDEP_DATA=… bin/pooled_posterior recipe/heart_disease/ep_full.toml     what a recipe trains on; with
//                                                               intercepts of clients' own and estimated noise where it has them
#include <array>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/message/read_file.h"
#include "fedep/sim/process.h"
#include "test/pooled_hierarchy.h"

namespace fedep {
namespace {

struct Question {
  PooledRows rows;
  double prior_precision = 1;
  SamplerSettings sampler = {};
  HierarchySettings hierarchy = {};
};

TargetKind target_called(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, TargetKind>, 3> kNames{
      {{"logistic", TargetKind::binary},
       {"linear", TargetKind::real},
       {"poisson", TargetKind::count}}};
  for (const auto& [known, target] : kNames) {
    if (known == name) return target;
  }
  throw InputError(fmt::format("outcome must be logistic, linear or poisson, but is {}", name));
}

PooledRows rows_in(const std::string& path, TargetKind target, double noise) {
  const std::vector<std::byte> bytes = read_file(path);
  std::istringstream text(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  std::vector<std::vector<double>> lines;
  for (std::string line; std::getline(text, line);) {
    std::istringstream numbers(line);
    std::vector<double>& row = lines.emplace_back();
    for (double number = 0; numbers >> number;) row.push_back(number);
    if (row.size() < 2 || row.size() != lines[0].size()) {
      throw InputError(
          fmt::format("{}: line {} must have as many numbers as the first", path, lines.size()));
    }
  }
  if (lines.empty()) throw InputError(fmt::format("{}: must have rows, but has none", path));
  const auto rows = Eigen::Index(lines.size()), columns = Eigen::Index(lines[0].size());
  PooledRows out{Eigen::MatrixXd::Ones(rows, columns), Eigen::VectorXd(rows), target, noise};
  for (Eigen::Index i = 0; i < rows; ++i) {
    const std::vector<double>& line = lines[std::size_t(i)];
    for (Eigen::Index j = 0; j + 1 < columns; ++j) out.x(i, j) = line[std::size_t(j)];
    out.y[i] = line.back();
  }
  return out;
}

Question question_of(const std::vector<std::string>& words) {
  if (words.size() == 6) {
    return {.rows = rows_in(words[0], target_called(words[1]), std::stod(words[3])),
            .prior_precision = std::stod(words[2]),
            .sampler = {.draws = std::stoi(words[4]), .seed = std::stoull(words[5])}};
  }
  const char* const folder = std::getenv("FEDEP_DATA");
  if (words.size() != 1 || folder == nullptr) {
    throw InputError(
        "usage: pooled_posterior ROWS OUTCOME PRIOR_PRECISION NOISE DRAWS SEED, or with "
        "$FEDEP_DATA a recipe");
  }
  const Recipe recipe = read_recipe(words[0]);
  const auto data = open_dataset(recipe.data, recipe.seed, folder);
  return {.rows = pooled_rows(*data, recipe.model.noise),
          .prior_precision = recipe.server.prior.value().precision,
          .hierarchy = {.intercepts = recipe.model.site_intercept,
                        .noise = recipe.model.estimate_noise,
                        .prior_mean = recipe.server.prior->mean,
                        .prior_precision = recipe.server.prior->precision}};
}

PooledPosterior answer(const Question& asked) {
  if (asked.hierarchy.intercepts || asked.hierarchy.noise) {
    return sample_hierarchy(asked.rows, asked.hierarchy, asked.sampler).shared;
  }
  return sample_posterior(asked.rows, asked.prior_precision, asked.sampler);
}

std::vector<double> numbers(const Eigen::VectorXd& x) { return {x.begin(), x.end()}; }

void print(const PooledPosterior& found) {
  nlohmann::ordered_json permilles = nlohmann::ordered_json::array();
  for (Eigen::Index i = 0; i < found.permilles.rows(); ++i) {
    permilles.push_back(numbers(found.permilles.row(i).transpose()));
  }
  const nlohmann::ordered_json json{
      {"mean", numbers(found.mean)},      {"sd", numbers(found.deviation)},
      {"mode", numbers(found.mode)},      {"laplace_sd", numbers(found.laplace_deviation)},
      {"rhat", found.worst_rhat},         {"effective", found.least_effective_draws},
      {"permilles", std::move(permilles)}};
  fmt::print("{}\n", json.dump());
}

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  fedep::prepare_process();
  try {
    const fedep::Question asked = fedep::question_of({argv + 1, argv + argc});
    fedep::print(fedep::answer(asked));
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "pooled_posterior: {}\n", error.what());
    return 2;
  }
}
