#include "app/posterior/prediction_formats.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "fedep/store/json.h"

namespace fedep {
namespace {

// The most probable class, or all tags that are more probable than not.
std::string prediction(const PredictedRows& rows, std::span<const double> values) {
  if (rows.target != TargetKind::tags) {
    const auto best = std::max_element(values.begin(), values.end());
    return rows.outputs[std::size_t(best - values.begin())];
  }
  std::vector<std::string> tags;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (values[i] > 0.5) tags.push_back(rows.outputs[i]);
  }
  return fmt::format("{}", fmt::join(tags, " "));
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string out = "\"";
  for (const char c : text) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

// What is not told is empty.
std::string field_of(double value) { return std::isnan(value) ? "" : fmt::format("{:.6g}", value); }

// Of an interval or a score that may not be there at all.
double at(const std::vector<double>& values, std::size_t i) {
  return values.empty() ? NAN : values[i];
}

Json json_of(double value) { return std::isnan(value) ? Json(nullptr) : Json(value); }

// One interval per row, of p_yes or of a mean; else one for each class or tag.
bool has_one_interval(const PredictedRows& rows) {
  return rows.has_deviation() || rows.target == TargetKind::binary;
}

std::string csv_heading(const PredictedRows& rows) {
  const bool real = rows.has_deviation();
  std::string out = rows.ids.empty() ? "row" : "row,id";
  for (const std::string& name : rows.outputs) out += "," + quoted(real ? name : "p_" + name);
  if (has_one_interval(rows)) {
    out += ",low,high";
  } else if (!rows.low.empty()) {
    for (const std::string& name : rows.outputs) {
      out += "," + quoted("low_" + name) + "," + quoted("high_" + name);
    }
  }
  out += real ? ",outcome_low,outcome_high" : ",prediction";
  out += ",entropy,mutual_information,outlier_score";
  out += rows.outliers.energies.empty() ? ",out_of_distribution" : ",energy,out_of_distribution";
  return out + (rows.unlike.empty() ? "\n" : ",unlike\n");
}

// "age (far from the mean); unit (new category)"
std::string unlike_text(const std::vector<Unlike>& unlike) {
  std::vector<std::string> parts;
  for (const Unlike& one : unlike) {
    parts.push_back(fmt::format("{} ({})", one.column, word_of(one.kind)));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add_csv_interval(const PredictedRows& rows, std::size_t row, std::string& out) {
  if (!has_one_interval(rows) && rows.low.empty()) return;
  const std::size_t width = has_one_interval(rows) ? 1 : rows.outputs.size();
  for (std::size_t j = row * width; j < (row + 1) * width; ++j) {
    out += "," + field_of(at(rows.low, j)) + "," + field_of(at(rows.high, j));
  }
}

void add_json_interval(const PredictedRows& rows, std::size_t row, Json& line) {
  if (has_one_interval(rows)) {
    line["low"] = json_of(at(rows.low, row));
    line["high"] = json_of(at(rows.high, row));
    return;
  }
  if (rows.low.empty()) return;
  Json low = Json::object(), high = Json::object();
  const std::size_t width = rows.outputs.size();
  for (std::size_t j = 0; j < width; ++j) {
    low[rows.outputs[j]] = rows.low[row * width + j];
    high[rows.outputs[j]] = rows.high[row * width + j];
  }
  line["low"] = std::move(low);
  line["high"] = std::move(high);
}

Json json_of(const std::vector<Unlike>& unlike) {
  Json out = Json::array();
  for (const Unlike& one : unlike) {
    out.push_back(Json{{"column", one.column}, {"why", word_of(one.kind)}});
  }
  return out;
}

}  // namespace

std::string predictions_csv(const PredictedRows& rows) {
  std::string out = csv_heading(rows);
  const std::size_t width = rows.outputs.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto values = std::span(rows.values).subspan(i * width, width);
    out += fmt::format("{}", rows.numbers[i]);
    if (!rows.ids.empty()) out += "," + quoted(rows.ids[i]);
    for (const double value : values) out += "," + field_of(value);
    add_csv_interval(rows, i, out);
    if (rows.has_deviation()) {
      out += "," + field_of(at(rows.outcome_low, i)) + "," + field_of(at(rows.outcome_high, i));
    } else {
      out += "," + quoted(prediction(rows, values));
    }
    out += fmt::format(",{},{},{:.6g}", field_of(rows.entropy[i]),
                       field_of(at(rows.mutual_information, i)), rows.outliers.scores[i]);
    if (!rows.outliers.energies.empty()) out += "," + field_of(rows.outliers.energies[i]);
    out += rows.outlier(i) ? ",1" : ",0";
    if (!rows.unlike.empty()) out += "," + quoted(unlike_text(rows.unlike[i]));
    out += "\n";
  }
  return out;
}

std::string predictions_jsonl(const PredictedRows& rows) {
  const std::size_t width = rows.outputs.size();
  std::string out;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const auto values = std::span(rows.values).subspan(i * width, width);
    Json line{{"row", rows.numbers[i]}};
    if (!rows.ids.empty()) line["id"] = rows.ids[i];
    Json named = Json::object();
    for (std::size_t j = 0; j < width; ++j) named[rows.outputs[j]] = json_of(values[j]);
    if (rows.has_deviation()) {
      line.update(named);
    } else {
      line["probabilities"] = std::move(named);
    }
    add_json_interval(rows, i, line);
    if (rows.has_deviation()) {
      line["outcome_low"] = json_of(at(rows.outcome_low, i));
      line["outcome_high"] = json_of(at(rows.outcome_high, i));
    } else {
      line["prediction"] = prediction(rows, values);
    }
    line["entropy"] = json_of(rows.entropy[i]);
    line["mutual_information"] = json_of(at(rows.mutual_information, i));
    line["outlier_score"] = rows.outliers.scores[i];
    if (!rows.outliers.energies.empty()) line["energy"] = json_of(rows.outliers.energies[i]);
    line["out_of_distribution"] = rows.outlier(i);
    if (!rows.unlike.empty()) line["unlike"] = json_of(rows.unlike[i]);
    if (!rows.withheld.empty()) line["withheld"] = rows.withheld;
    if (rows.withheld.empty() && !rows.no_interval.empty()) line["no_interval"] = rows.no_interval;
    out += line.dump() + "\n";
  }
  return out;
}

std::string left_out_csv(const PredictedRows& rows) {
  std::string out = "row,line,id,reason\n";
  for (const LeftOutRow& row : rows.left_out) {
    out += fmt::format("{},{},{},{}\n", row.number, row.line, quoted(row.id), quoted(row.why));
  }
  return out;
}

}  // namespace fedep
