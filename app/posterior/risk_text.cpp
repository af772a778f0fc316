#include "app/posterior/risk_text.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedep {
namespace {

Json json_of(const RiskReport& report) {
  Json bins = Json::array();
  for (const ReliabilityBin& bin : report.bins) {
    bins.push_back({{"risk", number_or_null(bin.confidence)},
                    {"observed", number_or_null(bin.accuracy)},
                    {"examples", bin.count}});
  }
  const RiskCalibration& line = report.calibration;
  return {{"examples", report.examples},
          {"events", report.events},
          {"auc", number_or_null(report.auc)},
          {"auc_se", number_or_null(report.auc_deviation)},
          {"intercept", number_or_null(line.intercept)},
          {"intercept_se", number_or_null(line.intercept_deviation)},
          {"slope", number_or_null(line.slope)},
          {"slope_se", number_or_null(line.slope_deviation)},
          {"bins", std::move(bins)},
          {"missing", report.missing}};
}

// Of all examples or of a client's.
template <class Scores>
Json all_json(const Scores& scores, const Scores* calibrated) {
  Json out{{"point", json_of(*scores.risk)}};
  if (scores.marginal_risk) out["marginal"] = json_of(*scores.marginal_risk);
  if (calibrated == nullptr) return out;
  out["point_calibrated"] = json_of(*calibrated->risk);
  if (calibrated->marginal_risk) out["marginal_calibrated"] = json_of(*calibrated->marginal_risk);
  return out;
}

template <class Scores>
const RiskReport& shown(const Scores& scores) {
  return scores.marginal_risk ? *scores.marginal_risk : *scores.risk;
}

// "0.812 ± 0.034", as far as it is known.
std::string with_error(double value, double error) {
  if (!std::isfinite(value)) return "-";
  if (!std::isfinite(error)) return fmt::format("{:.3f}", value);
  return fmt::format("{:.3f} ± {:.3f}", value, error);
}

// Bytes and columns differ by the two of ± that are one.
std::string padded(const std::string& text, std::size_t width) {
  const std::size_t columns = text.size() - (text.find("±") == std::string::npos ? 0 : 1);
  return std::string(width - std::min(width, columns), ' ') + text;
}

std::string line_of(std::string_view name, double value, double error, std::string_view meaning) {
  return fmt::format("{:<22}{}   {}\n", name, padded(with_error(value, error), 17), meaning);
}

std::string client_lines(const PosteriorEvaluation& scores) {
  std::size_t width = std::string_view("client").size();
  for (const ClientEvaluation& row : scores.clients) width = std::max(width, row.client.size());
  std::string out = fmt::format("\n{:<{}}  {:>8}  {:>6}{:>17}{:>17}{:>17}\n", "client", width,
                                "examples", "events", "auc", "intercept", "slope");
  for (const ClientEvaluation& row : scores.clients) {
    if (!row.risk) continue;
    const RiskReport& report = shown(row);
    const RiskCalibration& line = report.calibration;
    out += fmt::format("{:<{}}  {:>8}  {:>6}{}{}{}\n", row.client, width, report.examples,
                       report.events, padded(with_error(report.auc, report.auc_deviation), 17),
                       padded(with_error(line.intercept, line.intercept_deviation), 17),
                       padded(with_error(line.slope, line.slope_deviation), 17));
    if (!report.missing.empty()) {
      out += fmt::format("{:<{}}  {}\n", "", width, fmt::join(report.missing, "; "));
    }
  }
  return out;
}

// Predicted and observed risks, and what they come to.
std::string report_text(const RiskReport& report, std::string_view of) {
  const RiskCalibration& line = report.calibration;
  std::string out = fmt::format("\npredicted risk{}: {} of {} examples had the outcome\n", of,
                                report.events, report.examples);
  out += line_of("auc", report.auc, report.auc_deviation, "± its standard error");
  out += line_of("calibration intercept", line.intercept, line.intercept_deviation,
                 "0: as many events as predicted; above: more");
  out += line_of("calibration slope", line.slope, line.slope_deviation,
                 "1: as spread as they should be; below: too extreme");
  for (const std::string& sentence : report.missing) out += sentence + '\n';
  out += fmt::format("\n{:>10}{:>10}{:>10}\n", "predicted", "observed", "examples");
  for (const ReliabilityBin& bin : report.bins) {
    out += fmt::format("{:>9.1f}%{:>9.1f}%{:>10}\n", 100 * bin.confidence, 100 * bin.accuracy,
                       bin.count);
  }
  return out;
}

}  // namespace

Json risk_json(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated) {
  if (!scores.risk) return nullptr;
  const auto after = [&](std::size_t client) {
    return calibrated == nullptr ? nullptr : &calibrated->clients[client];
  };
  Json out = all_json(scores, calibrated);
  out["clients"] = Json::array();
  for (std::size_t i = 0; i < scores.clients.size(); ++i) {
    if (!scores.clients[i].risk) continue;
    Json one{{"client", scores.clients[i].client}};
    one.update(all_json(scores.clients[i], after(i)));
    out["clients"].push_back(std::move(one));
  }
  return out;
}

std::string risk_text(const PosteriorEvaluation& scores, const PosteriorEvaluation* calibrated,
                      bool per_client) {
  if (!scores.risk) return {};
  const bool draws = scores.marginal_risk.has_value();
  // Draws may have no temperature where predictions at the mean have one.
  const bool tempered = calibrated != nullptr && (!draws || calibrated->marginal_risk);
  const std::string of = draws ? ", averaged over draws" : "";
  std::string out = report_text(shown(scores), of + (tempered ? ", before the temperature" : ""));
  if (tempered) out += report_text(shown(*calibrated), of + ", after the temperature");
  return per_client ? out + client_lines(tempered ? *calibrated : scores) : out;
}

}  // namespace fedep
