#include "app/posterior/detection_text.h"

#include <cmath>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace fedep {
namespace {

Json json_of(const Detection& detection) {
  return {{"auroc", number_or_null(detection.auroc)}, {"se", number_or_null(detection.deviation)}};
}

// A temperature is of probabilities: energy and mutual information have none.
Json json_of(const Detections& by, bool calibrated) {
  Json out{{"max_probability", json_of(by.max_probability)}, {"entropy", json_of(by.entropy)}};
  if (calibrated) return out;
  if (by.energy) out["energy"] = json_of(*by.energy);
  if (by.mutual_information) out["mutual_information"] = json_of(*by.mutual_information);
  return out;
}

std::string cell(const std::optional<Detection>& detection) {
  if (!detection || std::isnan(detection->auroc)) return fmt::format("{:>18}", "-");
  std::string text = fmt::format("{:.4f}", detection->auroc);
  if (!std::isnan(detection->deviation)) text += fmt::format(" +- {:.4f}", detection->deviation);
  return fmt::format("{:>18}", text);
}

class Table {
 public:
  explicit Table(bool marginal) : marginal_(marginal) {
    text_ = fmt::format("{:<34}{:>18}", "unlike by", "point");
    text_ += marginal_ ? fmt::format("{:>18}\n", "marginal") : "\n";
  }

  void add(std::string_view name, const std::optional<Detection>& point,
           const std::optional<Detection>& marginal) {
    if (!point && !marginal) return;
    text_ += fmt::format("{:<34}{}{}\n", name, cell(point), marginal_ ? cell(marginal) : "");
  }
  void add_probabilities(std::string_view suffix, const DetectionReport& report) {
    const auto of = [&](Detection Detections::*score) {
      return report.marginal ? std::optional(*report.marginal.*score) : std::nullopt;
    };
    add(fmt::format("max probability{}", suffix), report.point.max_probability,
        of(&Detections::max_probability));
    add(fmt::format("entropy{}", suffix), report.point.entropy, of(&Detections::entropy));
  }

  const std::string& text() const { return text_; }

 private:
  bool marginal_;
  std::string text_;
};

}  // namespace

Json detection_json(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated) {
  if (scores.detection.empty()) return nullptr;
  Json out = Json::array();
  for (std::size_t i = 0; i < scores.detection.size(); ++i) {
    const DetectionReport& report = scores.detection[i];
    Json set{{"unlike", report.unlike},
             {"unlike_examples", report.unlike_examples},
             {"examples", report.examples},
             {"point", json_of(report.point, false)}};
    if (report.marginal) set["marginal"] = json_of(*report.marginal, false);
    if (calibrated != nullptr) {
      const DetectionReport& after = calibrated->detection[i];
      set["point_calibrated"] = json_of(after.point, true);
      if (after.marginal) set["marginal_calibrated"] = json_of(*after.marginal, true);
    }
    out.push_back(std::move(set));
  }
  return out;
}

std::string detection_text(const PosteriorEvaluation& scores,
                           const PosteriorEvaluation* calibrated) {
  std::string out;
  for (std::size_t i = 0; i < scores.detection.size(); ++i) {
    const DetectionReport& report = scores.detection[i];
    out += fmt::format("\ntelling {} unlike examples ({}) from {} held-out ones: AUROC\n",
                       report.unlike_examples, report.unlike, report.examples);
    Table table(report.marginal.has_value());
    table.add_probabilities("", report);
    table.add("energy", report.point.energy, std::nullopt);
    table.add("mutual information", std::nullopt,
              report.marginal ? report.marginal->mutual_information : std::nullopt);
    if (calibrated != nullptr) table.add_probabilities(", calibrated", calibrated->detection[i]);
    out += table.text();
  }
  return out;
}

}  // namespace fedep
