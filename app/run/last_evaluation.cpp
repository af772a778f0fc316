#include "app/run/last_evaluation.h"

#include <algorithm>
#include <memory>

#include "app/posterior/evaluation_file.h"
#include "app/posterior/risk_text.h"
#include "app/reproduce/table_metrics.h"
#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/config/resolve.h"
#include "fedep/model/registry.h"
#include "fedep/sim/family_choice.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/log/history.h"
#include "fedep/store/run_directory.h"

namespace fedep {
namespace {

constexpr const char* kEvaluation = "evaluation.json";

}  // namespace

void write_last_evaluation(const std::filesystem::path& run, std::int64_t round,
                           const Reliability& reliability, const Json& risk) {
  // Where nothing is held out, bins are empty: no calibration is known, not a perfect one.
  const bool scored = std::ranges::any_of(reliability.point,
                                          [](const ReliabilityBin& bin) { return bin.count > 0; });
  if (!scored) return;
  Json evaluation = evaluation_json(round, reliability);
  if (!risk.is_null()) evaluation["risk"] = risk;
  write_evaluation(run / kEvaluation, evaluation);
}

Json risk_at_mean(const Recipe& recipe, const Task& task, const ServerState& state) {
  const Dataset* const data = task.data();
  if (data == nullptr || data->info().target != TargetKind::binary || data->test_size() == 0) {
    return nullptr;
  }
  const std::unique_ptr<Model> model = make_model(recipe.model, data->info());
  const PosteriorEvaluation scores = evaluate_posterior(*data, *model, state, std::nullopt);
  if (state.temperatures.of(false, false) == 0) return risk_json(scores);
  const PosteriorEvaluation calibrated =
      evaluate_posterior(*data, *model, state, std::nullopt, {.tempered = true});
  return risk_json(scores, &calibrated);
}

bool lacks_evaluation(const std::filesystem::path& run) {
  if (std::filesystem::exists(run / kEvaluation)) return false;
  const History history = read_history(run / "log.jsonl");
  const Metrics scores = last_metrics(history.rounds);
  return summary_of(history).finished &&
         std::ranges::any_of(scores, [](const auto& score) { return score.first == "ece"; });
}

void restore_evaluation(const Recipe& given, const RunRecipeOptions& options) {
  const Recipe there = read_recipe(options.out / "recipe.toml");
  const Recipe recipe = with_families_of(there, with_factor_starts_of(there, given));
  const RunDirectory directory = RunDirectory::reopen(options.out, recipe);
  const std::unique_ptr<Task> task = make_task(recipe, options.data);
  const std::vector<std::int64_t> kept = directory.checkpoints();
  const std::int64_t rounds = kept.empty() ? rounds_of(recipe) : kept.back();
  const ServerState state = read_checkpoint(directory.checkpoint(rounds), task->layout()).state;
  const std::unique_ptr<SiteStore> no_sites = make_memory_store();  // no round follows
  const std::unique_ptr<Place> place =
      place_of(options).make(recipe, *task, *no_sites, place_options(options));
  place->evaluate(state, true);
  write_last_evaluation(directory.path(), rounds, place->reliability(),
                        risk_at_mean(recipe, *task, state));
}

}  // namespace fedep
