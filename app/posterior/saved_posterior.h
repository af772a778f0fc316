// A posterior as a run left it: what `evaluate`, `predict`, `export` and `coefficients` start from.
//
//   const SavedPosterior saved = read_posterior("run/heart_disease/ep");   // or a checkpoint file
//   const auto model = model_of(saved, data->info());
//
// The directory is only looked at, never opened as a run to go on with.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/message/layout.h"
#include "fedep/model/model.h"
#include "fedep/round/server_state.h"
#include "fedep/store/log/history.h"
#include "fedep/store/verdict.h"

namespace fedep {

struct SavedPosterior {
  std::filesystem::path file;  // the checkpoint
  Recipe recipe;
  Layout layout;  // of the weights, as the file has them
  ServerState state;
  std::string algorithm;   // of the phase that the checkpoint belongs to
  bool posterior = false;  // q has variances that may be told; else there is a point estimate
  // q is of a last round of curvature (sim/curvature.h): the mean that rounds came to, with the Hessian of all
  // clients' rows there. Empty: it is as rounds left it.
  struct CurvatureUse {
    double distance = 0;  // of the mean from the mode, in deviations
  };
  std::optional<CurvatureUse> curvature = {};
  // Why q's variances are not told, though the algorithm has some (withheld.h); empty where it has none,
  // or they are.
  std::string withheld = {};
  bool over = false;     // no round follows
  Verdict verdict = {};  // on the run until here, by the log beside the checkpoint
  // Part of every weight's precision that the phase's factors began with (round/diagnosis/start_left.h): 0 where
  // they began flat, NaN where it is not known.
  double start_precision = 0;

  bool infers() const { return posterior || !withheld.empty(); }
};

// A run's latest checkpoint, or this one. Throws InputError if there is none, naming what is there.
std::filesystem::path checkpoint_of(const std::filesystem::path& run_or_checkpoint);

// `known`: the log as far as it is known already; null: what is beside the checkpoint is read.
SavedPosterior read_posterior(const std::filesystem::path& run_or_checkpoint,
                              const History* known = nullptr);

// How the run prepared a table's rows, as its features.json says; null where there is none.
std::shared_ptr<const TableFeatures> kept_features(const SavedPosterior& saved);
// Throws InputError if these data are a table that is prepared in another way now.
void check_features(const SavedPosterior& saved, const DatasetInfo& data);

// The recipe's model for these data. Throws InputError if its tensors are not the checkpoint's.
std::unique_ptr<Model> model_of(const SavedPosterior& saved, const DatasetInfo& data);

// Throws InputError if the checkpoint has no average of the server, with the round that it begins after.
void check_average(const SavedPosterior& saved);

// How many draws predictions average: as many as are asked for, else the recipe's evaluate.samples,
// else ten.
int draws_to_average(const SavedPosterior& saved, std::optional<int> asked);

// Why predictions or scores (`what`) are those of an estimate alone.
std::string no_draws(const SavedPosterior& saved, std::string_view what, bool average);

// What users are told of a run that is not to be trusted; nothing of others.
std::string distrust(const SavedPosterior& saved);

// Of every weight's precision, the part that is still alpha from the phase's beginning; empty where
// there is none, or it is not known.
std::vector<double> start_shares(const SavedPosterior& saved);
// That it is more than 5 % somewhere, or not known; else nothing.
inline constexpr double kStartSaid = 0.05;
std::string start_note(const SavedPosterior& saved);

// "played 300 of 1500 rounds", or nothing for a run that is over.
std::string unfinished(const SavedPosterior& saved);

// What a last round of curvature says of the mean, or that it is asked for and not there; nothing where
// there is nothing to say.
std::string curvature_note(const SavedPosterior& saved);
// Whether draws around the server's average can be made: of two rounds at least, and not of means that went
// beyond all bounds.
bool can_draw_around_average(const SavedPosterior& saved);
// Why there is no temperature of draws where there is one of predictions at the mean, or at the average.
std::string no_temperature_of_draws(const SavedPosterior& saved, bool average);
// What is to be said where so many draws are predicted at the temperature of many fewer or more; or nothing.
std::string few_draws_note(const SavedPosterior& saved, bool average, int samples);

}  // namespace fedep
