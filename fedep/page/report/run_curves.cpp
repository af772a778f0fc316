#include "fedep/page/report/run_curves.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "fedep/metric/curve.h"

namespace fedep {
namespace {

constexpr std::string_view kMarginal = "_marginal";
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// What the names have in common, without a dangling "-seed"; one of them if that is nothing.
std::string common_name(std::span<const RunRecord> runs, const std::vector<std::size_t>& members) {
  const std::string& first = runs[members.front()].name;
  if (members.size() == 1) return first;
  std::size_t length = first.size();
  for (const std::size_t member : members) {
    const std::string& name = runs[member].name;
    const auto end =
        std::mismatch(first.begin(), first.begin() + long(length), name.begin(), name.end()).first;
    length = std::size_t(end - first.begin());
  }
  std::string name = first.substr(0, length);
  const auto trim = [&](std::string_view ends) {
    const std::size_t last = name.find_last_not_of(ends);
    name.resize(last == name.npos ? 0 : last + 1);
  };
  trim("-_./ =0123456789");
  if (name.ends_with("seed")) name.resize(name.size() - 4);
  trim("-_./ =");
  return name.empty() ? first : name;
}

// A run that scores itself every few rounds has a point for each; a window of rounds holds fewer of
// them. Between them there is nothing.
std::vector<double> smoothed(const RunRecord& run, std::string_view score, std::size_t window) {
  std::vector<double> curve = score_curve(run, score);
  if (window <= 1) return curve;
  const auto every = std::size_t(std::max(1, run.recipe.evaluate.every));
  std::vector<double> points;
  for (std::size_t i = every - 1; i < curve.size(); i += every) points.push_back(curve[i]);
  const std::vector<double> means = running_mean(points, std::max<std::size_t>(1, window / every));
  std::fill(curve.begin(), curve.end(), kNan);
  for (std::size_t p = 0; p < means.size(); ++p) curve[(p + 1) * every - 1] = means[p];
  return curve;
}

}  // namespace

std::vector<RunGroup> group_by_seed(std::span<const RunRecord> runs) {
  const auto without_seed = [](Recipe recipe) {
    recipe.seed = 0;
    return recipe;
  };
  std::vector<RunGroup> groups;
  std::vector<Recipe> recipes;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Recipe recipe = without_seed(runs[i].recipe);
    std::size_t g = 0;
    // The same run twice is shown twice: equal seeds do not make a spread.
    const auto fits = [&](std::size_t group) {
      return recipes[group] == recipe &&
             std::none_of(groups[group].runs.begin(), groups[group].runs.end(), [&](auto other) {
               return runs[other].recipe.seed == runs[i].recipe.seed;
             });
    };
    while (g < groups.size() && !fits(g)) ++g;
    if (g == groups.size()) {
      groups.push_back({});
      recipes.push_back(recipe);
    }
    groups[g].runs.push_back(i);
  }
  for (RunGroup& group : groups) group.name = common_name(runs, group.runs);
  return groups;
}

ScoreStyle score_style(std::string_view name) {
  struct Row {
    std::string_view name, title;
    bool percent, larger_is_better;
  };
  constexpr std::array<Row, 15> kRows{{
      {"accuracy", "Accuracy", true, true},
      {"nll", "Negative log-likelihood", false, false},
      {"ece", "Calibration error (ECE)", true, false},
      {"brier", "Brier score", false, false},
      {"auc", "Area under the ROC curve", true, true},
      {"precision", "Precision", true, true},
      {"recall", "Recall", true, true},
      {"micro_f1", "Micro-F1", true, true},
      {"macro_f1", "Macro-F1", true, true},
      {"recall_at_5", "Recall at 5", true, true},
      {"rmse", "Root mean squared error", false, false},
      {"deviance", "Poisson deviance", false, false},
      {"distance", "Distance to the exact mean", false, false},
      {"train_loss", "Training loss", false, false},
      {"moved", "Movement of q in a window, deviations", false, false},
  }};
  std::string_view own = name;
  std::string about;
  for (const auto& [suffix, words] : {std::pair{"_calibrated", ", after a temperature"},
                                      std::pair{"_average", ", of the server's average"}}) {
    if (!own.ends_with(suffix)) continue;
    own.remove_suffix(std::string_view(suffix).size());
    about.insert(0, words);
  }
  if (own == "temperature") return {"Temperature T" + about, false, false, false};
  for (const Row& row : kRows) {
    if (row.name == own) {
      return {std::string(row.title) + about, row.percent, row.larger_is_better};
    }
  }
  return {std::string(name), false, false};
}

std::vector<std::string> scores_in(std::span<const RunRecord> runs) {
  std::vector<std::string> names;
  bool has_loss = false, has_moved = false;
  for (const RunRecord& run : runs) {
    for (const RoundRecord& round : run.history.rounds) {
      has_loss |= std::isfinite(round.train_loss);
      has_moved |= std::isfinite(score_of(round, "moved"));
      for (const auto& [name, value] : round.scores) {
        if (!std::isfinite(value) || name.ends_with(kMarginal)) continue;
        if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
      }
    }
  }
  if (has_loss) names.push_back("train_loss");
  if (has_moved) names.push_back("moved");
  return names;
}

std::string marginal_name(std::string_view score) { return std::string(score).append(kMarginal); }

std::vector<double> score_curve(const RunRecord& run, std::string_view score) {
  std::vector<double> curve;
  for (const RoundRecord& round : run.history.rounds) curve.push_back(score_of(round, score));
  return curve;
}

MeanCurve mean_curve(std::span<const RunRecord> runs, const RunGroup& group, std::string_view score,
                     std::size_t window) {
  std::vector<std::vector<double>> curves;
  std::size_t rounds = std::numeric_limits<std::size_t>::max();
  for (const std::size_t run : group.runs) {
    if (runs[run].history.rounds.empty()) continue;  // not begun
    curves.push_back(smoothed(runs[run], score, window));
    rounds = std::min(rounds, curves.back().size());
  }
  MeanCurve out;
  if (curves.empty()) return out;
  const double n = double(curves.size());
  for (std::size_t round = 0; round < rounds; ++round) {
    double sum = 0, squares = 0;
    for (const auto& curve : curves) sum += curve[round];  // NaN if one is
    const double mean = sum / n;
    for (const auto& curve : curves) squares += (curve[round] - mean) * (curve[round] - mean);
    out.mean.push_back(mean);
    out.deviation.push_back(n > 1 ? std::sqrt(squares / (n - 1)) : kNan);
  }
  return out;
}

}  // namespace fedep
