#include "app/posterior/coefficients/coefficient_formats.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/trust.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

constexpr std::string_view kKinds[] = {"intercept", "number",      "category",
                                       "missing",   "interaction", "interval"};  // as in TermKind

std::string_view kind_of(const Coefficient& row) {
  switch (row.kind) {
    case RowKind::effect:
      return kKinds[std::size_t(row.term.kind)];
    case RowKind::contrast:
      return "contrast";
    case RowKind::intercept:
      return "intercept";
    case RowKind::spread:
      return "spread";
  }
  return "";
}

// Of rows that compare something, unless they are differences.
std::optional<Effect> ratio_of(const CoefficientTable& table, const Coefficient& row) {
  const bool compares = row.kind == RowKind::effect || row.kind == RowKind::contrast;
  if (!compares || table.effect == EffectKind::difference) return std::nullopt;
  return exponential(effect_of(table, row, EffectUnit::own));
}

// The standard deviation that a spread's row has the logarithm of.
std::optional<Effect> spread_of(const CoefficientTable& table, const Coefficient& row) {
  if (row.kind != RowKind::spread) return std::nullopt;
  return exponential(effect_of(table, row, EffectUnit::own));
}

void put(Json& json, const std::string& name, const std::optional<Effect>& effect) {
  json[name] = effect ? Json(effect->estimate) : Json();
  const bool known = effect && effect->interval;
  json[name + "_low"] = known ? Json(effect->interval->first) : Json();
  json[name + "_high"] = known ? Json(effect->interval->second) : Json();
}

Json row_json(const CoefficientTable& table, const Coefficient& row) {
  const Effect standardised = effect_of(table, row, EffectUnit::standardised);
  Json json{
      {"name", row.name}, {"mean", row.mean}, {"sd", nullptr}, {"low", nullptr}, {"high", nullptr}};
  if (row.deviation) {
    json["sd"] = *row.deviation;
    json["low"] = standardised.interval->first;
    json["high"] = standardised.interval->second;
  }
  if (row.start_share) json["start_share"] = *row.start_share;
  json["kind"] = kind_of(row);
  if (!row.of_class.empty()) json["class"] = row.of_class;
  if (!row.term.column.empty()) json["column"] = row.term.column;
  if (!row.term.level.empty()) json["value"] = row.term.level;
  if (!row.term.reference.empty()) json["reference"] = row.term.reference;
  json["per"] = row.per;
  put(json, "estimate", effect_of(table, row, EffectUnit::own));
  put(json, "ratio", ratio_of(table, row));
  if (row.kind == RowKind::spread) put(json, "spread", spread_of(table, row));
  if (!row.shares.empty()) json["shares"] = row.shares;
  return json;
}

// Quoted where it must be.
std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? "\"\"" : std::string(1, c);
  return out + '"';
}

std::vector<std::string> numbers_of(const std::optional<Effect>& effect) {
  const bool known = effect && effect->interval;
  return {effect ? fmt::format("{}", effect->estimate) : "",
          known ? fmt::format("{}", effect->interval->first) : "",
          known ? fmt::format("{}", effect->interval->second) : ""};
}

std::string latex_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += "\\textbackslash{}";
        break;
      case '~':
        out += "\\textasciitilde{}";
        break;
      case '^':
        out += "\\textasciicircum{}";
        break;
      case '<':
        out += "\\textless{}";
        break;
      case '>':
        out += "\\textgreater{}";
        break;
      case '"':
        out += "\\textquotedbl{}";
        break;
      case '|':
        out += "\\textbar{}";
        break;
      case '&':
      case '%':
      case '$':
      case '#':
      case '_':
      case '{':
      case '}':
        out += '\\';
        [[fallthrough]];
      default:
        out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
  }
  return out;
}

// "$0.50$ ($0.34$ to $0.74$)".
std::string latex_with_interval(const Effect& effect) {
  const EffectText text = effect_text(effect.estimate, effect.interval, EffectScale::ratio);
  if (text.low.empty()) return fmt::format("${}$", text.estimate);
  return fmt::format("${}$ (${}$ to ${}$)", text.estimate, text.low, text.high);
}

// Two cells: an estimate and its interval.
std::string latex_cells(const std::optional<Effect>& effect, EffectScale scale, bool intervals) {
  EffectText text;
  if (effect) text = effect_text(effect->estimate, effect->interval, scale);
  const auto number = [](const std::string& n) { return n.empty() ? n : fmt::format("${}$", n); };
  std::string out = " & " + number(text.estimate);
  if (intervals) {
    out +=
        text.low.empty() ? " &" : fmt::format(" & {} to {}", number(text.low), number(text.high));
  }
  return out;
}

}  // namespace

std::string coefficients_json(const CoefficientTable& table) {
  Json rows = Json::array(), contrasts = Json::array(), shares = Json::array();
  for (const Coefficient& row : table.rows) {
    (row.kind == RowKind::contrast ? contrasts : rows).push_back(row_json(table, row));
  }
  for (std::size_t i = 0; i < table.shares.size(); ++i) {
    shares.push_back({{"of", table.share_names[i]}, {"share", table.shares[i]}});
  }
  Json json{{"data", table.data},
            {"algorithm", table.algorithm},
            {"round", table.round},
            {"unit", fmt::format("{} per {}", change_name(table),
                                 table.scaled ? "standard deviation" : "unit")},
            {"notes", table.notes},
            {"run", trust_json(table.verdict)},
            {"level", table.level},
            {"outcome", table.outcome},
            {"ratio", ratio_name(table)},
            {"coefficients", std::move(rows)}};
  if (!contrasts.empty()) json["contrasts"] = std::move(contrasts);
  if (!table.reference.empty()) json["reference_class"] = table.reference;
  if (table.likelihood.target == TargetKind::real) json["noise"] = table.likelihood.noise;
  if (table.full) json["family"] = "full";
  if (table.curvature) json["curvature"] = {{"distance_to_mode", *table.curvature}};
  if (!table.withheld.empty()) json["withheld"] = table.withheld;
  if (!table.shares.empty()) json["shares"] = std::move(shares);
  if (!table.shares_note.empty()) json["shares_note"] = table.shares_note;
  return json.dump() + "\n";
}

std::string coefficients_csv(const CoefficientTable& table) {
  std::vector<std::string> head{"name",
                                "kind",
                                "class",
                                "column",
                                "value",
                                "reference",
                                "per",
                                "estimate",
                                "low",
                                "high",
                                "ratio",
                                "ratio_low",
                                "ratio_high",
                                "sd",
                                "sd_low",
                                "sd_high",
                                "standardised",
                                "standardised_sd",
                                "standardised_low",
                                "standardised_high",
                                "level"};
  const bool by_client = !table.rows.empty() && !table.rows[0].shares.empty();
  if (by_client) {
    for (const std::string& name : table.share_names) head.push_back(csv_cell("share of " + name));
  }
  std::string out = fmt::format("{}\n", fmt::join(head, ","));
  for (const Coefficient& row : table.rows) {
    std::vector<std::string> cells{csv_cell(row.name),        std::string(kind_of(row)),
                                   csv_cell(row.of_class),    csv_cell(row.term.column),
                                   csv_cell(row.term.level),  csv_cell(row.term.reference),
                                   fmt::format("{}", row.per)};
    const auto append = [&](std::vector<std::string> more) {
      cells.insert(cells.end(), more.begin(), more.end());
    };
    append(numbers_of(effect_of(table, row, EffectUnit::own)));
    append(numbers_of(ratio_of(table, row)));
    append(numbers_of(spread_of(table, row)));
    std::vector<std::string> scaled = numbers_of(effect_of(table, row, EffectUnit::standardised));
    scaled.insert(scaled.begin() + 1, row.deviation ? fmt::format("{}", *row.deviation) : "");
    append(std::move(scaled));
    cells.push_back(fmt::format("{}", table.level));
    for (const double share : row.shares) cells.push_back(fmt::format("{}", share));
    out += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return out;
}

std::string coefficients_latex(const CoefficientTable& table) {
  const bool intervals = table.has_intervals(), ratios = table.effect != EffectKind::difference;
  const std::string interval =
      intervals ? fmt::format(" & {} interval", latex_escaped(level_text(table.level))) : "";
  std::string out = "% needs \\usepackage{booktabs}\n";
  if (const std::string none = no_intervals(table); !none.empty())
    out += fmt::format("% {}\n", none);
  for (const std::string& note : table.notes) out += fmt::format("% {}.\n", note);
  const std::size_t numbers = (ratios ? 3 : 2) * (intervals ? 2 : 1);  // columns behind the term
  out += fmt::format("\\begin{{tabular}}{{l{}}}\n\\toprule\nterm", std::string(numbers, 'r'));
  if (ratios) out += fmt::format(" & {}{}", ratio_name(table), interval);
  out +=
      fmt::format(" & {}{} & per sd{} \\\\\n\\midrule\n", change_name(table), interval, interval);
  std::string block = "\n";  // no class has this name
  for (const Coefficient& row : table.rows) {
    if (row.kind == RowKind::spread) continue;
    if (row.of_class != block) {
      block = row.of_class;
      if (!block.empty()) {
        out += fmt::format("\\multicolumn{{{}}}{{l}}{{{} against {}}} \\\\\n", 1 + numbers,
                           latex_escaped(block), latex_escaped(table.reference));
      }
    }
    out += latex_escaped(own_name(row));
    if (ratios) out += latex_cells(ratio_of(table, row), EffectScale::ratio, intervals);
    for (const EffectUnit unit : {EffectUnit::own, EffectUnit::standardised}) {
      out += latex_cells(effect_of(table, row, unit), EffectScale::difference, intervals);
    }
    out += " \\\\\n";
  }
  std::string rule = "\\midrule\n";  // before the first spread
  for (const Coefficient& row : table.rows) {
    const std::optional<Effect> spread = spread_of(table, row);
    if (!spread) continue;
    out +=
        fmt::format("{}SD of {} & \\multicolumn{{{}}}{{l}}{{{}}} \\\\\n", std::exchange(rule, ""),
                    latex_escaped(spread_name(row)), numbers, latex_with_interval(*spread));
  }
  return out + "\\bottomrule\n\\end{tabular}\n";
}

ForestFigure forest_of(const CoefficientTable& table) {
  const std::string ratio = ratio_name(table);
  const std::string of = table.outcome.empty() ? "" : " of " + table.outcome;
  ForestFigure out{
      .title = "Differences" + of,
      .note = table.has_intervals() ? level_text(table.level) + " intervals" : "no intervals",
      .axis = ratio.empty() ? "change of the outcome" : ratio,
      .caption = fmt::format("{}, {} after {} rounds. Numbers: for {}. Categories: "
                             "against the level behind "
                             "“vs”.",
                             table.data, table.algorithm, table.round,
                             table.scaled ? "as much more of the column as its name says"
                                          : "one more unit of the column"),
      .scale = ratio.empty() ? EffectScale::difference : EffectScale::ratio};
  if (!ratio.empty()) {  // "Odds ratios of died"
    out.title = ratio + "s" + of;
    out.title[0] = char(std::toupper(out.title[0]));
  }
  bool has_baseline = false;
  for (const Coefficient& row : table.rows) {
    if (row.kind == RowKind::intercept || row.kind == RowKind::spread) continue;
    if (row.term.kind == TermKind::interval) {
      has_baseline = true;
      continue;
    }
    const Effect effect = effect_of(table, row, EffectUnit::figure);
    out.rows.push_back(
        {row.figure_name.empty() ? row.name : row.figure_name, effect.estimate, effect.interval,
         row.of_class.empty() ? "" : fmt::format("{} against {}", row.of_class, table.reference)});
  }
  if (has_baseline) out.caption += " The baseline hazard's pieces are left out.";
  if (!table.withheld.empty()) {  // all of it: a picture has no notes beside it
    out.caption += fmt::format(" There are no intervals: {}.", table.withheld);
  } else {
    out.caption += " " + no_intervals(table);
  }
  return out;
}

std::span<const CoefficientFormat> coefficient_formats() {
  static constexpr std::array<CoefficientFormat, 4> kFormats{{
      {"text", [](const CoefficientTable& table) { return coefficients_text(table); }, true},
      {"csv", coefficients_csv, false},
      {"latex", coefficients_latex, true},
      {"json", coefficients_json, true},
  }};
  return kFormats;
}

}  // namespace fedep
