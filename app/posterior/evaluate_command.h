// `fedep evaluate RUN|CHECKPOINT`: a posterior's scores on held-out examples, at its mean and
// averaged over draws, overall and per client.
//
//   const EvaluateReport report = evaluate_run("run/heart_disease/ep", data_folder, {.samples = 10});
//   fmt::print("{}", evaluation_text(report, false));
//   write_evaluation(run / "evaluation.json", evaluation_json(report));
//
// evaluation.json: {"data", "algorithm", "round", "samples", "layers", "examples",
//   "metrics": {"accuracy": …, "nll_calibrated": …, "accuracy_marginal": …}, "run": {"trust", "why", "helps"},
//   "reliability": {"point": [{"confidence", "accuracy", "weight"} × 15], "marginal": […]},
//   "per_client": [{"client", "examples", "metrics": {…}}],
//   "risk": {…}, of yes or no, as in risk_text.h, "selective": {…}, of classes, as in selective_text.h,
//   "detection": […], of unlike examples, as in detection_text.h}
// as in evaluation_file.h, whose file of a run's end this replaces. A score that does not exist is
// null.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "fedep/sim/score/posterior_evaluation.h"
#include "fedep/store/json.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct EvaluateReport {
  std::string data;
  std::string algorithm;
  std::int64_t round = 0;
  int samples = 0;  // 0: the mean alone
  bool last_layer = false;
  bool average = false;
  PosteriorEvaluation scores;
  std::optional<PosteriorEvaluation> calibrated = {};  // after temperatures, where there are any
  std::string withheld = {};            // why there are no draws, though the algorithm infers
  std::vector<std::string> notes = {};  // what the scores are not, and what they say: a line each
  Verdict verdict = {};                 // on the run
};

struct EvaluateDraws {
  std::optional<int> samples = {};  // 0: none; not given: draws_to_average() of the run
  bool last_layer = false;
  bool average = false;  // of the server's average and around it, in place of q
  // A file of rows or images, as `fedep predict` reads them, that are to be told from held-out ones; empty: none.
  std::filesystem::path unlike = {};
};

EvaluateReport evaluate_run(const std::filesystem::path& run_or_checkpoint,
                            const std::filesystem::path& data_folder, const EvaluateDraws& draws);

std::string evaluation_text(const EvaluateReport& report, bool per_client);
Json evaluation_json(const EvaluateReport& report);

void add_evaluate_command(Command& app, int& exit_code);

}  // namespace fedep
