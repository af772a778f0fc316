#include "fedep/page/report/evaluation_part.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace fedep {
namespace {

// Of predictions.
constexpr std::array kKinds{"point", "point_calibrated", "marginal", "marginal_calibrated"};

Json part_of(const Json& json, const char* key) {
  return json.is_object() && json.contains(key) ? json.at(key) : Json(nullptr);
}

Json number_in(const Json& json, const char* key) {
  const Json value = part_of(json, key);
  return value.is_number() ? value : Json(nullptr);
}

Json bins_json(const Json& bins) {
  if (!bins.is_array()) return nullptr;
  Json out = Json::array();
  for (const Json& bin : bins) {
    out.push_back({{"confidence", number_in(bin, "confidence")},
                   {"accuracy", number_in(bin, "accuracy")},
                   {"weight", number_in(bin, "weight")}});
  }
  return out;
}

Json reliability_json(const Json& evaluation) {
  const Json reliability = part_of(evaluation, "reliability");
  if (!reliability.is_object()) return nullptr;
  Json out = Json::object();
  for (const char* kind : kKinds) out[kind] = bins_json(part_of(reliability, kind));
  return out;
}

// What evaluate says of risks, of one kind of prediction.
Json risk_report_json(const Json& report) {
  if (!report.is_object()) return nullptr;
  Json out = Json::object();
  for (const char* key :
       {"examples", "events", "auc", "auc_se", "intercept", "intercept_se", "slope", "slope_se"}) {
    out[key] = number_in(report, key);
  }
  if (out["examples"].is_null() || out["events"].is_null()) return nullptr;
  out["bins"] = Json::array();
  out["missing"] = Json::array();
  const Json bins = part_of(report, "bins"), missing = part_of(report, "missing");
  for (const Json& bin : bins.is_array() ? bins : Json::array()) {
    Json one = Json::object();
    for (const char* key : {"risk", "observed", "examples"}) one[key] = number_in(bin, key);
    const bool whole = std::ranges::none_of(one, [](const Json& value) { return value.is_null(); });
    if (whole) out["bins"].push_back(std::move(one));
  }
  for (const Json& sentence : missing.is_array() ? missing : Json::array()) {
    if (sentence.is_string()) out["missing"].push_back(sentence);
  }
  return out;
}

Json risk_json(const Json& evaluation) {
  const Json risk = part_of(evaluation, "risk");
  const auto all = [](const Json& of) {
    Json kinds = Json::object();
    for (const char* kind : kKinds) kinds[kind] = risk_report_json(part_of(of, kind));
    return kinds;
  };
  Json out = all(risk);
  if (out["point"].is_null()) return nullptr;
  out["clients"] = Json::array();
  const Json clients = part_of(risk, "clients");
  for (const Json& row : clients.is_array() ? clients : Json::array()) {
    const Json client = part_of(row, "client");
    Json one = all(row);
    if (!client.is_string() || one["point"].is_null()) continue;
    one["client"] = client;
    out["clients"].push_back(std::move(one));
  }
  return out;
}

Json per_client_json(const Json& evaluation) {
  const Json rows = part_of(evaluation, "per_client");
  if (!rows.is_array()) return nullptr;
  Json out = Json::array();
  for (const Json& row : rows) {
    const Json client = part_of(row, "client"), scores = part_of(row, "metrics");
    Json metrics = Json::object();
    if (scores.is_object()) {
      for (const auto& [name, value] : scores.items()) {
        if (value.is_number()) metrics[name] = value;
      }
    }
    out.push_back({{"client", client.is_string() ? client : Json(client.dump())},
                   {"examples", number_in(row, "examples")},
                   {"metrics", std::move(metrics)}});
  }
  return out;
}

// A list of numbers alone, so long as `size`; null: it is something else.
Json numbers_in(const Json& json, const char* key, std::size_t size) {
  Json values = part_of(json, key);
  const bool whole = values.is_array() && values.size() == size &&
                     std::ranges::all_of(values, [](const Json& one) { return one.is_number(); });
  return whole ? values : Json(nullptr);
}

// Curves of selective prediction, each as long as the list of coverages.
Json selective_json(const Json& evaluation) {
  const Json selective = part_of(evaluation, "selective");
  const std::size_t size = part_of(selective, "coverage").size();
  Json out{{"coverage", numbers_in(selective, "coverage", size)}, {"curves", Json::object()}};
  if (size == 0 || out["coverage"].is_null()) return nullptr;
  for (const char* key :
       {"point", "point_calibrated", "marginal", "marginal_calibrated", "mutual_information"}) {
    const Json curve = part_of(selective, key);
    Json risk = numbers_in(curve, "risk", size);
    if (risk.is_null()) continue;
    out["curves"][key] = {{"risk", std::move(risk)}, {"area", number_in(curve, "area")}};
  }
  return out["curves"].empty() ? Json(nullptr) : out;
}

Json detection_json(const Json& evaluation) {
  const Json sets = part_of(evaluation, "detection");
  Json out = Json::array();
  for (const Json& set : sets.is_array() ? sets : Json::array()) {
    const Json unlike = part_of(set, "unlike");
    Json one{{"unlike", unlike.is_string() ? unlike : Json("unlike examples")},
             {"examples", number_in(set, "examples")},
             {"unlike_examples", number_in(set, "unlike_examples")},
             {"scores", Json::object()}};
    for (const char* key : kKinds) {
      const Json by = part_of(set, key);
      for (const char* score : {"max_probability", "entropy", "energy", "mutual_information"}) {
        const Json found = part_of(by, score);
        if (number_in(found, "auroc").is_null()) continue;
        one["scores"][key][score] = {{"auroc", number_in(found, "auroc")},
                                     {"se", number_in(found, "se")}};
      }
    }
    if (!one["scores"].empty()) out.push_back(std::move(one));
  }
  return out.empty() ? Json(nullptr) : out;
}

}  // namespace

Json evaluation_part(const Json& file) {
  // Of the server's average, as an earlier version left it: no numbers of the run itself.
  const Json evaluation = part_of(file, "average") == true ? Json(nullptr) : file;
  return {{"reliability", reliability_json(evaluation)},
          {"risk", risk_json(evaluation)},
          {"per_client", per_client_json(evaluation)},
          {"selective", selective_json(evaluation)},
          {"detection", detection_json(evaluation)}};
}

}  // namespace fedep
