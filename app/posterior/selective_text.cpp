#include "app/posterior/selective_text.h"

#include <array>
#include <cmath>
#include <optional>
#include <string_view>

#include <fmt/format.h>

namespace fedep {
namespace {

Json json_of(const SelectiveCurve& curve) {
  Json risk = Json::array();
  for (const double value : curve.risk) risk.push_back(number_or_null(value));
  return {{"risk", std::move(risk)},
          {"area", number_or_null(curve.area)},
          {"least_area", number_or_null(curve.least_area)}};
}

// Places in kSelectiveCoverages of what the text shows: 50, 80, 90 and 100 %.
constexpr std::array<std::size_t, 4> kShown{4, 7, 8, 9};

std::string line_of(std::string_view name, const SelectiveCurve& curve) {
  std::string out = fmt::format("{:<36}", name);
  for (const std::size_t i : kShown) out += fmt::format("{:>8.2f}%", 100 * curve.risk[i]);
  return out + fmt::format("{:>9.4f}\n", curve.area);
}

}  // namespace

Json selective_json(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated) {
  if (!scores.selective) return nullptr;
  const SelectiveReport& report = *scores.selective;
  Json out{{"coverage", kSelectiveCoverages}, {"point", json_of(report.point)}};
  out["point"]["entropy"] = number_or_null(report.entropy);
  if (report.marginal) {
    out["marginal"] = json_of(*report.marginal);
    out["marginal"]["entropy"] = number_or_null(report.entropy_marginal.value());
    out["mutual_information"] = json_of(*report.mutual_information);
    out["mutual_information"]["mean"] = number_or_null(report.information.value());
  }
  if (calibrated != nullptr) {
    out["point_calibrated"] = json_of(calibrated->selective->point);
    const std::optional<SelectiveCurve>& draws = calibrated->selective->marginal;
    if (draws) out["marginal_calibrated"] = json_of(*draws);
  }
  return out;
}

std::string selective_text(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated,
                           bool average) {
  if (!scores.selective) return {};
  const SelectiveReport& report = *scores.selective;
  std::string out = "\nerrors among the surest examples\n";
  out += fmt::format("{:<36}", "surest by");
  for (const std::size_t i : kShown) out += fmt::format("{:>8.0f}%", 100 * kSelectiveCoverages[i]);
  out += fmt::format("{:>9}\n", "area");
  out += line_of("confidence, at the mean", report.point);
  if (calibrated != nullptr) {
    out += line_of("confidence, at the mean, calibrated", calibrated->selective->point);
  }
  if (report.marginal) {
    out += line_of("confidence, over draws", *report.marginal);
    if (calibrated != nullptr && calibrated->selective->marginal) {
      out += line_of("confidence, over draws, calibrated", *calibrated->selective->marginal);
    }
    out += line_of("mutual information, over draws", *report.mutual_information);
    out += fmt::format(
        "An averaged prediction has an entropy of {:.4f} nats on average; {:.4f} of it is mutual\n"
        "information, which {}.\n",
        *report.entropy_marginal, *report.information,
        average ? "says how far rounds scattered around their average"
                : "more data would take away");
  }
  return out;
}

}  // namespace fedep
