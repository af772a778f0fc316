#include "app/posterior/saved_posterior.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/posterior/withheld.h"
#include "app/run/run_recipe.h"
#include "app/trust.h"
#include "fedep/algorithm/algorithm.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/error.h"
#include "fedep/model/registry.h"
#include "fedep/model/shared_extras.h"
#include "fedep/round/diagnosis/start_left.h"
#include "fedep/round/server_average.h"
#include "fedep/sim/curvature.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/curvature_file.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void refuse_folder(const fs::path& folder) {
  std::error_code ignored;
  if (!fs::exists(folder / "recipe.toml", ignored)) {
    throw InputError(fmt::format(
        "{}: must be a run directory or a checkpoint, but has neither recipe.toml nor checkpoints",
        folder.string()));
  }
  throw InputError(fmt::format(
      "{}: run must have a checkpoint, but has none: it has not come to its first yet, or was "
      "stopped before; fedep run --resume goes on",
      folder.string()));
}

Layout layout_in(const SafetensorsFile& file) {
  constexpr std::string_view kEta = "eta.";
  Layout layout;
  for (const Tensor& tensor : file.tensors) {
    if (!tensor.name.starts_with(kEta)) continue;
    layout.push_back({tensor.name.substr(kEta.size()), tensor.shape});
  }
  return layout;
}

Recipe recipe_in(const SafetensorsFile& file) {
  const auto found = file.metadata.find("recipe");
  if (found == file.metadata.end() || file.metadata.count("sites") == 0) {
    throw InputError(fmt::format(
        "{}: must be a checkpoint of fedep, but is another safetensors file", file.origin));
  }
  return parse_recipe(found->second, file.origin);
}

// Whatever of a log beside the checkpoint can be read; nothing if there is none.
std::optional<History> log_beside(const fs::path& checkpoint) {
  const fs::path log = checkpoint.parent_path() / "log.jsonl";
  std::error_code ignored;
  if (!fs::exists(log, ignored)) return std::nullopt;
  return read_history_so_far(log).history;
}

// The run as its log has it until the checkpoint.
void judge(SavedPosterior& saved, const History* log) {
  const std::int64_t round = saved.state.round;
  saved.over = round >= rounds_of(saved.recipe);
  if (log == nullptr) {
    saved.verdict = {Trust::not_judged, "there is no log.jsonl beside the checkpoint", {}};
    return;
  }
  const std::vector<RoundRecord>& rounds = log->rounds;
  if (!rounds.empty() && rounds.back().round >= std::int64_t(rounds.size())) {
    // Of a run that is watched.
    saved.verdict = {Trust::not_judged, "its rounds are known in part", {}};
    return;
  }
  History history = *log;
  saved.over |= is_finished(saved.recipe, history) && history.end->rounds == round;
  if (std::int64_t(history.rounds.size()) > round) history.rounds.resize(std::size_t(round));
  saved.verdict =
      verdict_of(saved.recipe, history, saved.over, improper_coordinates(saved.state.global));
}

double start_precision_in(const PhaseSettings& phase, std::int64_t round, const History* log) {
  constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();
  if (phase.factors == FactorStart::flat) return 0;
  if (log == nullptr) return kUnknown;
  // The latest that is known, which is more where the checkpoint's own round is not.
  std::optional<double> latest;
  for (const RoundRecord& record : log->rounds) {
    if (record.round < round) latest = record.start_precision;
  }
  return latest.value_or(kUnknown);
}

double least_precision(const Message& q) {
  if (q.full()) return min_eigenvalue(q.lambda_packed(), q.size());
  return double(*std::ranges::min_element(q.lambda_span()));
}

// Of the precision matrix; where parameters are in it that are no weights (model/shared_extras.h), whose
// scales have nothing to do with one another, of the one with ones on its diagonal. Elements are
// rounded relative to themselves, so that nothing is lost by that.
double condition_of(const Message& q, const Layout& layout) {
  if (!extras_of(layout).any()) return condition_number(q.lambda_packed(), q.size());
  Packed<HostVector<float>> scaled = q.lambda_packed();
  std::vector<double> root(q.size());
  for (std::size_t i = 0; i < q.size(); ++i) {
    root[i] = std::sqrt(double(scaled.elements[packed_index(i, i)]));
  }
  for (std::size_t i = 0; i < q.size(); ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      float& one = scaled.elements[packed_index(i, j)];
      one = float(double(one) / (root[i] * root[j]));
    }
  }
  return condition_number(scaled, q.size());
}

// `of_rounds`: q's precisions are what the rounds of its phase made of them.
void find_what_is_told(SavedPosterior& saved, std::size_t phase, const History* log,
                       bool of_rounds) {
  const Message& q = saved.state.global;
  const bool proper = is_proper(q);
  saved.withheld =
      why_withheld({.recipe = saved.recipe,
                    .phase = phase,
                    .round = saved.state.round,
                    .rounds = log == nullptr ? nullptr : &log->rounds,
                    .of_rounds = of_rounds,
                    .distrust = saved.verdict.trust == Trust::none ? trust_text(saved.verdict) : "",
                    .proper = proper,
                    .full = q.full(),
                    .condition = proper && q.full() ? condition_of(q, saved.layout) : 1,
                    .least_precision = proper ? least_precision(q) : 0});
  saved.posterior = saved.withheld.empty();
  saved.start_precision =
      of_rounds ? start_precision_in(saved.recipe.phases[phase], saved.state.round, log) : 0;
}

SavedPosterior read_saved(const fs::path& path, const History* known) {
  SavedPosterior out;
  out.file = path;
  {
    const SafetensorsFile file = read_safetensors(path);
    out.recipe = recipe_in(file);
    out.layout = layout_in(file);
  }
  out.state = read_checkpoint(path, out.layout).state;
  const auto phase = std::size_t(std::max<std::int64_t>(out.state.phase, 0));
  if (phase >= out.recipe.phases.size()) {
    throw InputError(fmt::format("{}: phase must be one of the recipe's {}, but is {}",
                                 path.string(), out.recipe.phases.size(), phase));
  }
  out.algorithm = out.recipe.phases[phase].algorithm;
  const std::optional<History> read = known == nullptr ? log_beside(path) : std::nullopt;
  const History* const log = read ? &*read : known;
  judge(out, log);
  if (!find_algorithm(out.algorithm).point_estimate) find_what_is_told(out, phase, log, true);
  return out;
}

// Where there is a last round of curvature of this very state, q is its.
void use_curvature(SavedPosterior& saved) {
  const fs::path path = curvature_path(saved.file.parent_path());
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  const KeptCurvature kept = read_curvature(path);
  const Curvature& curvature = kept.curvature;
  if (curvature.round != saved.state.round) return;  // of the end that an earlier start had
  check_own_curvature(path, kept, saved.file);
  const DenseGaussian<double> q = posterior_of(curvature, saved.state.prior);
  saved.curvature.emplace();
  saved.posterior = is_proper(q);
  saved.withheld = saved.posterior ? "" : "the curvature at the mean is not positive definite";
  if (!saved.posterior) return;
  saved.curvature->distance = distance_to_mode(curvature, saved.state.prior, q);
  saved.state.global = to_message<float>(q);
  saved.state.temperatures.marginal = 0;  // that was of draws from q as it was
  find_what_is_told(saved, std::size_t(std::max<std::int64_t>(saved.state.phase, 0)), nullptr,
                    false);
}

std::string shape_text(const TensorShape& tensor) {
  return fmt::format("{} [{}]", tensor.name, fmt::join(tensor.shape, ", "));
}

}  // namespace

fs::path checkpoint_of(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    throw InputError(fmt::format("{}: must be a run directory or a checkpoint, but is not there",
                                 path.string()));
  }
  if (!fs::is_directory(path, error)) return path;
  constexpr std::string_view kPrefix = "checkpoint-";
  std::int64_t latest = -1;
  fs::path out;
  for (const auto& entry : fs::directory_iterator(path)) {
    const std::string name = entry.path().stem().string();
    if (!name.starts_with(kPrefix) || entry.path().extension() != ".safetensors") continue;
    std::int64_t round = -1;
    std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), round);
    if (round > latest) {
      latest = round;
      out = entry.path();
    }
  }
  if (latest < 0) refuse_folder(path);
  return out;
}

SavedPosterior read_posterior(const fs::path& run_or_checkpoint, const History* known) {
  for (int tries = 1;; ++tries) {
    const fs::path file = checkpoint_of(run_or_checkpoint);
    try {
      SavedPosterior saved = read_saved(file, known);
      use_curvature(saved);
      return saved;
    } catch (const InputError&) {
      // A run that goes on may have replaced it by its next one meanwhile.
      std::error_code ignored;
      if (fs::exists(file, ignored) || file == run_or_checkpoint || tries == 3) throw;
    }
  }
}

std::unique_ptr<Model> model_of(const SavedPosterior& saved, const DatasetInfo& data) {
  std::unique_ptr<Model> model = make_model(saved.recipe.model, data);
  const Layout& made = model->layout();
  if (made.size() != saved.layout.size()) {
    throw InputError(fmt::format(
        "{}: checkpoint must be of this model, which has {} tensors, but has {}: it is of another "
        "model",
        saved.file.string(), made.size(), saved.layout.size()));
  }
  for (std::size_t i = 0; i < made.size(); ++i) {
    if (made[i] == saved.layout[i]) continue;
    throw InputError(fmt::format(
        "{}: checkpoint must be of this model, which has {} on data {}, but has {}: it is of "
        "another model or of other data",
        saved.file.string(), shape_text(made[i]), data.name, shape_text(saved.layout[i])));
  }
  return model;
}

std::shared_ptr<const TableFeatures> kept_features(const SavedPosterior& saved) {
  const std::filesystem::path kept = saved.file.parent_path() / "features.json";
  std::error_code ignored;
  if (!std::filesystem::exists(kept, ignored)) return nullptr;
  const std::vector<std::byte> bytes = read_file(kept);
  return std::make_shared<const TableFeatures>(parse_table_features(
      {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kept.string()));
}

void check_features(const SavedPosterior& saved, const DatasetInfo& data) {
  const std::shared_ptr<const TableFeatures> kept = kept_features(saved);
  if (kept == nullptr || data.table == nullptr || prepare_alike(*kept, *data.table)) return;
  throw InputError(
      fmt::format("{}: data must be those of the run, but their columns, categories, means or "
                  "deviations differ from its features.json",
                  saved.file.parent_path().string()));
}

void check_average(const SavedPosterior& saved) {
  if (saved.state.average.rounds > 0) return;
  std::int64_t end = 0;  // of the checkpoint's phase
  for (std::int64_t i = 0; i <= saved.state.phase; ++i) {
    end += saved.recipe.phases[std::size_t(i)].rounds;
  }
  const PhaseSettings& phase = saved.recipe.phases[std::size_t(saved.state.phase)];
  if (phase.average && phase.average->kind == AverageKind::tail) {
    throw InputError(
        fmt::format("{}: the run's average must have begun, but is of the phase's last {} rounds, "
                    "which begin after round {}, and this is round {}",
                    saved.file.string(), phase.average->rounds, end - phase.average->rounds,
                    saved.state.round));
  }
  throw InputError(fmt::format(
      "{}: the run must have kept an average of its server (phase.average), but has none here",
      saved.file.string()));
}

int draws_to_average(const SavedPosterior& saved, std::optional<int> asked) {
  constexpr int kDraws = 10;
  const int in_recipe = saved.recipe.evaluate.samples;
  return asked.value_or(in_recipe > 0 ? in_recipe : kDraws);
}

std::string no_draws(const SavedPosterior& saved, std::string_view what, bool average) {
  if (!saved.withheld.empty()) {
    const bool is_said = saved.withheld == distrust(saved);
    return fmt::format("{} are those of the {}, without draws{}", what,
                       average ? "average" : "mean", is_said ? "" : ": " + saved.withheld);
  }
  if (average) {
    return fmt::format("{}, so there is nothing to draw: {} are those of the average itself",
                       saved.state.average.rounds == 1 ? "an average of one round has no spread"
                                                       : "the average's spread is not finite",
                       what);
  }
  return fmt::format("{} has no posterior to draw from: {} are those of its estimate",
                     saved.algorithm, what);
}

std::string distrust(const SavedPosterior& saved) {
  return saved.verdict.trust == Trust::none ? trust_text(saved.verdict) : "";
}

std::vector<double> start_shares(const SavedPosterior& saved) {
  if (!saved.posterior || !(saved.start_precision > 0)) return {};
  return start_shares(saved.state.global, saved.start_precision);
}

std::string start_note(const SavedPosterior& saved) {
  if (!saved.posterior || saved.start_precision == 0) return {};
  const std::string remedy = fmt::format("phase.{}.factors = \"flat\"", saved.state.phase);
  if (std::isnan(saved.start_precision)) {
    return fmt::format(
        "how much of the precisions is still alpha from the phase's beginning, and was not "
        "inferred, is not known ({}: none)",
        remedy);
  }
  const std::vector<double> shares = start_shares(saved);
  const double most = *std::ranges::max_element(shares);
  if (most <= kStartSaid) return {};
  return fmt::format(
      "up to {:.0f} % of a weight's precision is still alpha from the phase's beginning and was "
      "not inferred: deviations are too small by up to {:.0f} % (more rounds, or {})",
      100 * most, 100 * (1 - std::sqrt(1 - most)), remedy);
}

std::string unfinished(const SavedPosterior& saved) {
  const std::int64_t rounds = rounds_of(saved.recipe);
  if (saved.over) return "";
  return fmt::format("{}: the run is not over: this is round {} of {}", saved.file.string(),
                     saved.state.round, rounds);
}

std::string curvature_note(const SavedPosterior& saved) {
  if (!saved.curvature) {
    const bool missing =
        has_curvature(saved.recipe) && saved.state.round >= rounds_of(saved.recipe);
    if (!missing) return "";
    return fmt::format("{}: the last round of curvature is missing; fedep run --resume adds it",
                       saved.file.parent_path().string());
  }
  constexpr double kFar = 0.5;
  if (!(saved.curvature->distance > kFar)) return "";
  return fmt::format(
      "the mean is {:.2g} deviations away from where the curvature puts it: more rounds bring it "
      "there",
      saved.curvature->distance);
}

bool can_draw_around_average(const SavedPosterior& saved) {
  const ServerAverage& average = saved.state.average;
  return average.rounds > 1 && is_proper(spread_around(average));
}

std::string no_temperature_of_draws(const SavedPosterior& saved, bool average) {
  std::string why = "evaluate.samples was 0";
  if (saved.curvature && !average) {
    why = "they are of a last round of curvature, which came later";
  } else if (saved.recipe.evaluate.samples > 0) {
    why = fmt::format("the latest temperatures are of round {}, in which the run made none",
                      saved.state.temperatures.round);
  }
  return fmt::format("clients fitted none to these draws ({})", why);
}

std::string few_draws_note(const SavedPosterior& saved, bool average, int samples) {
  constexpr int kEnough = 10;  // averages over more of them have nearly one temperature
  const int fitted_to = saved.recipe.evaluate.samples;
  const double temperature = saved.state.temperatures.of(average, true);
  if (temperature == 0 || temperature == 1) return {};
  if (samples == fitted_to || std::min(samples, fitted_to) >= kEnough) return {};
  return fmt::format(
      "the temperature of draws was fitted to averages over {} of them (evaluate.samples), and "
      "does not suit averages over {}",
      fitted_to, samples);
}

}  // namespace fedep
