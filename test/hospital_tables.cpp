// Prints the tables of result/hospitals.md: FedEP against the posterior of the pooled rows, and
// held-out scores of everybody together and every hospital alone.
//
//   FEDEP_DATA=… bin/hospital_tables heart_disease        or eicu; run in the repository's root
//   FEDEP_DATA=… bin/hospital_tables heart_disease phase.0.inference.langevin=false
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/sim/process.h"
#include "test/hospital_study.h"

namespace fedep {
namespace {

void print_agreement(const Recipe& recipe, const Dataset& data, const PooledPosterior& pooled) {
  fmt::print(
      "Pooled posterior: {:.1f} % of proposals accepted, R-hat {:.4f} at worst, {:.0f} effective "
      "draws at least\n\n",
      100 * pooled.acceptance, pooled.worst_rhat, pooled.least_effective_draws);
  fmt::print("| round | largest distance of a mean | smallest ratio | largest ratio |\n");
  fmt::print("| ---: | ---: | ---: | ---: |\n");
  for (int rounds = 5; rounds <= recipe.phases[0].rounds; rounds += 5) {
    Recipe shorter = recipe;
    shorter.phases[0].rounds = rounds;
    const Agreement near = agreement(play_recipe(shorter, data).global, pooled);
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} |\n", rounds, near.largest_distance(),
               near.smallest_ratio(), near.largest_ratio());
  }
}

void print_coefficients(const Message& q, const Dataset& data, const PooledPosterior& pooled) {
  std::vector<std::string> names = data.info().feature_names;
  names.emplace_back("intercept");
  const HostVector<float> means = mean(q), variances = variance(q);
  const Agreement near = agreement(q, pooled);
  fmt::print(
      "\n| coefficient | pooled mean | pooled sd | federated mean | federated sd | distance | sd "
      "ratio | curvature alone |\n");
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  for (std::size_t i = 0; i < q.size(); ++i) {
    const auto j = Eigen::Index(i);
    fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} | {:.3f} |\n", names[i],
               pooled.mean[j], pooled.deviation[j], means[i], std::sqrt(variances[i]),
               near.mean_distance[i], near.deviation_ratio[i],
               pooled.curvature_deviation[j] / pooled.deviation[j]);
  }
}

void print_scores(std::string_view name, const Metrics& metrics, std::string_view suffix = "") {
  const auto of = [&](std::string_view key) {
    return metric(metrics, fmt::format("{}{}", key, suffix));
  };
  fmt::print("| {} | {:.3f} | {:.3f} | {:.3f} |\n", name, of("auc"), of("nll"), of("ece"));
}

HostVector<float> to_floats(const Eigen::VectorXd& x) {
  std::vector<float> out;
  for (const double v : x) out.push_back(float(v));
  return HostVector<float>(std::move(out));
}

// `overrides` as after --set, of the recipe for EP alone.
int print_tables(const std::string& name, const std::vector<std::string>& overrides,
                 const std::filesystem::path& data_folder) {
  const auto recipe_of = [&](std::string_view variant, const std::vector<std::string>& set = {}) {
    return read_recipe(fmt::format("recipe/{}/{}.toml", name, variant), set);
  };
  const Recipe recipe = recipe_of(name == "eicu" ? "sep" : "ep", overrides);
  const auto data = open_dataset(recipe.data, recipe.seed, data_folder);
  const PooledPosterior pooled =
      sample_posterior(pooled_rows(*data), recipe.server.prior->precision);
  const ServerState together = play_recipe(recipe, *data);
  print_agreement(recipe, *data, pooled);
  print_coefficients(together.global, *data, pooled);

  fmt::print(
      "\n{} held-out rows\n\n| fitted by | AUC | NLL | ECE |\n| --- | ---: | ---: | ---: |\n",
      data->test_size());
  Evaluation evaluation(*data, make_model(recipe.model, data->info()));
  const auto at = [&](const ServerState& state) { return evaluation.at(point_estimate(state)); };
  const MarginalDraws draws{
      .seed = recipe.seed, .round = together.round, .samples = recipe.evaluate.samples};
  const std::string method = recipe.phases[0].algorithm == "fed_sep" ? "FedSEP" : "FedEP";
  print_scores(method + ", at the mean", at(together));
  print_scores(method + ", marginalised", evaluation.marginal(together.global, draws), "_marginal");
  print_scores("FedAvg", at(play_recipe(recipe_of("avg"), *data)));
  print_scores("FedPA", at(play_recipe(recipe_of("pa"), *data)));
  print_scores("pooled rows, posterior mean", evaluation.at(to_floats(pooled.mean)));

  std::vector<HostVector<float>> alone;
  for (std::size_t k = 0; k < data->clients().size(); ++k) {
    alone.push_back(point_estimate(play_recipe(recipe, *only_client(*data, k))));
  }
  if (alone.size() < 10) {
    for (std::size_t k = 0; k < alone.size(); ++k) {
      print_scores(
          fmt::format("{} alone, {} rows", data->clients()[k].first, data->clients()[k].second),
          evaluation.at(alone[k]));
    }
  }
  print_scores("each hospital alone, on its own rows",
               scores_of_own_models(*data, recipe.model, alone));
  if (alone.size() >= 10) return 0;

  fmt::print("\n| hospital | held-out rows | alone: AUC | NLL | ECE | {}: AUC | NLL | ECE |\n",
             method);
  fmt::print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  const auto shared = evaluation.per_client(point_estimate(together));
  for (std::size_t c = 0; c < shared.size(); ++c) {
    std::size_t rows = 0;
    for (std::size_t i = 0; i < data->test_size(); ++i) rows += data->test_client(i) == c ? 1 : 0;
    std::size_t k = 0;
    while (data->clients()[k].first != shared[c].client) ++k;
    const Metrics own = evaluation.per_client(alone[k])[c].metrics;
    const auto three = [](const Metrics& m) {
      return fmt::format("{:.3f} | {:.3f} | {:.3f}", metric(m, "auc"), metric(m, "nll"),
                         metric(m, "ece"));
    };
    fmt::print("| {} | {} | {} | {} |\n", shared[c].client, rows, three(own),
               three(shared[c].metrics));
  }
  return 0;
}

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  fedep::prepare_process();
  const char* const folder = std::getenv("FEDEP_DATA");
  const std::string name = argc > 1 ? argv[1] : "";
  if (folder == nullptr || (name != "heart_disease" && name != "eicu")) {
    fmt::print(stderr,
               "usage: FEDEP_DATA=DIR hospital_tables heart_disease|eicu [SECTION.KEY=VALUE...]\n");
    return 2;
  }
  try {
    return fedep::print_tables(name, {argv + 2, argv + argc}, folder);
  } catch (const std::exception& error) {
    fmt::print(stderr, "hospital_tables: {}\n", error.what());
    return 1;
  }
}
