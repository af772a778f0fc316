#include "fedep/page/report/forest_json.h"

#include <cmath>
#include <string>
#include <utility>

#include <fmt/format.h>

namespace fedep {
namespace {

// "1.85 (1.20 to 2.70)"
std::string text_of(const ForestRow& row, EffectScale scale) {
  const auto shown = [&](double x) { return scale == EffectScale::ratio ? std::exp(x) : x; };
  std::optional<Bounds> interval;
  if (row.interval) interval = Bounds{shown(row.interval->first), shown(row.interval->second)};
  const EffectText text = effect_text(shown(row.estimate), interval, scale);
  if (text.low.empty()) return text.estimate;
  return fmt::format("{} ({} to {})", text.estimate, text.low, text.high);
}

bool is_finite(const Bounds& bounds) {
  return std::isfinite(bounds.first) && std::isfinite(bounds.second);
}

}  // namespace

Json forest_json(const std::optional<ForestFigure>& figure) {
  if (!figure) return nullptr;
  Json rows = Json::array();
  for (ForestRow row : figure->rows) {
    if (row.interval && !is_finite(*row.interval)) row.interval.reset();
    const bool there = std::isfinite(row.estimate);
    rows.push_back({{"name", row.name},
                    {"group", row.group},
                    {"estimate", there ? Json(row.estimate) : Json(nullptr)},
                    {"low", row.interval ? Json(row.interval->first) : Json(nullptr)},
                    {"high", row.interval ? Json(row.interval->second) : Json(nullptr)},
                    {"text", there ? text_of(row, figure->scale) : "–"}});
  }
  return {{"title", figure->title},
          {"note", figure->note},
          {"axis", figure->axis},
          {"caption", figure->caption},
          {"ratio", figure->scale == EffectScale::ratio},
          {"rows", std::move(rows)}};
}

}  // namespace fedep
