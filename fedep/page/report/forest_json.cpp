#include "fedep/page/report/forest_json.h"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fedep {
namespace {

// "1.85 (1.20 to 2.70)"
std::string text_of(double estimate, const std::optional<Bounds>& interval, EffectScale scale) {
  const EffectText text = effect_text(estimate, interval, scale);
  if (text.low.empty()) return text.estimate;
  return fmt::format("{} ({} to {})", text.estimate, text.low, text.high);
}

std::string text_of(const ForestRow& row, EffectScale scale) {
  const auto shown = [&](double x) { return scale == EffectScale::ratio ? std::exp(x) : x; };
  std::optional<Bounds> interval;
  if (row.interval) interval = Bounds{shown(row.interval->first), shown(row.interval->second)};
  return text_of(shown(row.estimate), interval, scale);
}

bool is_finite(const Bounds& bounds) {
  return std::isfinite(bounds.first) && std::isfinite(bounds.second);
}

}  // namespace

Json forest_json(const std::optional<CoefficientReport>& report) {
  if (!report) return nullptr;
  const ForestFigure& figure = report->figure;
  Json rows = Json::array(), spreads = Json::array(), shares = Json::array();
  for (const CoefficientReport::Spread& spread : report->spreads) {
    std::optional<Bounds> interval = spread.interval;
    if (interval && !is_finite(*interval)) interval.reset();
    const bool there = std::isfinite(spread.estimate);
    spreads.push_back(
        {{"name", spread.name},
         {"text", there ? text_of(spread.estimate, interval, EffectScale::ratio) : "–"}});
  }
  for (const CoefficientReport::Share& share : report->shares) {
    shares.push_back({{"name", share.name}, {"share", number_or_null(share.share)}});
  }
  for (ForestRow row : figure.rows) {
    if (row.interval && !is_finite(*row.interval)) row.interval.reset();
    const bool there = std::isfinite(row.estimate);
    rows.push_back({{"name", row.name},
                    {"group", row.group},
                    {"estimate", there ? Json(row.estimate) : Json(nullptr)},
                    {"low", row.interval ? Json(row.interval->first) : Json(nullptr)},
                    {"high", row.interval ? Json(row.interval->second) : Json(nullptr)},
                    {"text", there ? text_of(row, figure.scale) : "–"}});
  }
  return {{"title", figure.title},
          {"note", figure.note},
          {"axis", figure.axis},
          {"caption", figure.caption},
          {"ratio", figure.scale == EffectScale::ratio},
          {"rows", std::move(rows)},
          {"spreads", std::move(spreads)},
          {"shares", std::move(shares)},
          {"shares_note", report->shares_note}};
}

}  // namespace fedep
