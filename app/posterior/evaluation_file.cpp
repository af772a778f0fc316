#include "app/posterior/evaluation_file.h"

#include <cmath>
#include <span>
#include <string>

#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

Json bins_json(const std::vector<ReliabilityBin>& bins) {
  std::int64_t total = 0;
  for (const ReliabilityBin& bin : bins) total += bin.count;
  Json out = Json::array();
  for (const ReliabilityBin& bin : bins) {
    out.push_back({{"confidence", number_or_null(bin.confidence)},
                   {"accuracy", number_or_null(bin.accuracy)},
                   {"weight", total > 0 ? double(bin.count) / double(total) : 0.0}});
  }
  return out;
}

}  // namespace

Json evaluation_json(std::int64_t round, const Reliability& reliability) {
  Json bins{{"point", bins_json(reliability.point)}};
  if (!reliability.marginal.empty()) bins["marginal"] = bins_json(reliability.marginal);
  return {{"round", round}, {"reliability", std::move(bins)}};
}

void add_calibrated(const Reliability& reliability, Json& evaluation) {
  Json& bins = evaluation["reliability"];
  bins["point_calibrated"] = bins_json(reliability.point);
  if (!reliability.marginal.empty()) bins["marginal_calibrated"] = bins_json(reliability.marginal);
}

void write_evaluation(const std::filesystem::path& path, const Json& evaluation) {
  const std::string text = evaluation.dump() + "\n";
  replace_file(path, std::as_bytes(std::span(text)));
}

}  // namespace fedep
