#include "fedep/store/checkpoint.h"

#include <charconv>
#include <cstdlib>
#include <span>
#include <utility>

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <nlohmann/json.hpp>

#include "fedep/message/check.h"
#include "fedep/message/nesting.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

constexpr std::string_view kFormat = "fedep.checkpoint";
constexpr std::string_view kVersion = "2";
constexpr std::string_view kUnboundVersion = "1";  // without log and site_seals

// A hash of tensor names and shapes: two models that differ there cannot share a checkpoint.
std::string model_hash(const Layout& layout) {
  std::string text;
  for (const TensorShape& tensor : layout) {
    text += tensor.name;
    for (const std::int64_t extent : tensor.shape) text += fmt::format(",{}", extent);
    text += ";";
  }
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

class TensorWriter {
 public:
  explicit TensorWriter(const Layout& layout) : layout_(layout) {}

  void add(const std::string& prefix, std::span<const float> values) {
    std::size_t begin = 0;
    for (const TensorShape& tensor : layout_) {
      tensors_.push_back(
          {prefix + tensor.name, tensor.shape, values.subspan(begin, tensor.size())});
      begin += tensor.size();
    }
  }
  void add(const std::string& prefix, const Message& message) {
    add(prefix + "eta.", message.eta().span());
    if (message.isotropic()) {
      tensors_.push_back({prefix + "lambda", {}, message.lambda_span()});
    } else if (message.full()) {
      const auto size = std::int64_t(message.lambda_span().size());
      tensors_.push_back({prefix + "lambda", {size}, message.lambda_span()});
    } else {
      add(prefix + "lambda.", message.lambda_span());
    }
  }
  const std::vector<TensorView>& tensors() const { return tensors_; }

 private:
  const Layout& layout_;
  std::vector<TensorView> tensors_;
};

class TensorReader {
 public:
  TensorReader(const SafetensorsFile& file, const Layout& layout) : file_(file), layout_(layout) {}

  bool has(const std::string& prefix) const {
    return !layout_.empty() && file_.has(prefix + layout_[0].name);
  }
  HostVector<float> vector(const std::string& prefix) const {
    std::vector<float> values;
    values.reserve(size_of(layout_));
    for (const TensorShape& shape : layout_) {
      const Tensor& tensor = file_.tensor(prefix + shape.name);
      if (tensor.shape != shape.shape) {
        throw InputError(fmt::format("{}: tensor {} must have the model's shape, but has another",
                                     file_.origin, tensor.name));
      }
      const std::vector<float>& part = file_.get<float>(tensor.name);
      values.insert(values.end(), part.begin(), part.end());
    }
    return HostVector<float>(std::move(values));
  }
  Message message(const std::string& prefix) const {
    HostVector<float> eta = vector(prefix + "eta.");
    if (!file_.has(prefix + "lambda")) return {std::move(eta), vector(prefix + "lambda.")};
    const std::vector<float>& lambda = file_.get<float>(prefix + "lambda");
    const bool full = !file_.tensor(prefix + "lambda").shape.empty();
    check_same_size(file_.origin, prefix + "lambda",
                    lambda_size(full ? Family::full : Family::isotropic, eta.size()),
                    lambda.size());
    if (full) return {std::move(eta), Packed<HostVector<float>>{HostVector<float>(lambda)}};
    return {std::move(eta), lambda[0]};
  }

 private:
  const SafetensorsFile& file_;
  const Layout& layout_;
};

std::string slot_prefix(std::string_view slot) { return fmt::format("optim.{}.", slot); }

bool is_flat(const Message& message) {
  for (const float x : message.eta()) {
    if (x != 0) return false;
  }
  for (const float x : message.lambda_span()) {
    if (x != 0) return false;
  }
  return true;
}

// Numbers that are not tensors, as one JSON text; doubles keep their bits (shortest form that
// reads back the same).
std::string numbers_text(const ServerState& state) {
  nlohmann::ordered_json numbers{
      {"round", state.round},
      {"phase", state.phase},
      {"optimizer_steps", state.optimizer.steps},
      {"grid", {state.grid.largest_eta, state.grid.largest_lambda, state.grid.extra_bits}}};
  if (const ServerAverage& average = state.average; average.rounds > 0) {
    numbers["average"] = {average.rounds, average.lambda_number};
  }
  if (!state.step_scales.empty()) numbers["step_scales"] = state.step_scales;
  if (const Temperatures& t = state.temperatures; t.round > 0) {
    numbers["temperatures"] = {
        {"round", t.round},
        {"point", t.point},
        {"marginal", t.marginal},
        {"average", t.average},
        {"average_marginal", t.average_marginal},
    };
  }
  if (const ConvergenceState& window = state.convergence; window.begun >= 0) {
    // Infinity is null.
    numbers["window"] = {{"begun", window.begun},
                         {"lost", window.lost},
                         {"before", window.before},
                         {"latest", window.latest}};
    nlohmann::ordered_json& kept = numbers["window"];
    for (const auto& [name, move] :
         {std::pair{"mean_at", &window.mean_at}, {"log_sd_at", &window.log_sd_at}}) {
      if (move->coordinate >= 0) kept[name] = {move->coordinate, move->by};
    }
    if (window.left_before) kept["left_before"] = *window.left_before;
    if (window.left_latest) kept["left_latest"] = *window.left_latest;
  }
  return numbers.dump();
}

void read_numbers(const std::string& text, ServerState& state) {
  const auto numbers = nlohmann::json::parse(shallow_json(text));
  numbers.at("round").get_to(state.round);
  numbers.at("phase").get_to(state.phase);
  numbers.at("optimizer_steps").get_to(state.optimizer.steps);
  numbers.at("grid").at(0).get_to(state.grid.largest_eta);
  numbers.at("grid").at(1).get_to(state.grid.largest_lambda);
  numbers.at("grid").at(2).get_to(state.grid.extra_bits);
  if (numbers.contains("average")) {
    numbers.at("average").at(0).get_to(state.average.rounds);
    numbers.at("average").at(1).get_to(state.average.lambda_number);
  }
  if (numbers.contains("step_scales")) numbers.at("step_scales").get_to(state.step_scales);
  if (numbers.contains("temperatures")) {
    const auto& kept = numbers.at("temperatures");
    Temperatures& t = state.temperatures;
    kept.at("round").get_to(t.round);
    kept.at("point").get_to(t.point);
    kept.at("marginal").get_to(t.marginal);
    kept.at("average").get_to(t.average);
    kept.at("average_marginal").get_to(t.average_marginal);
  }
  if (numbers.contains("window")) {
    const auto& kept = numbers.at("window");
    ConvergenceState& window = state.convergence;
    kept.at("begun").get_to(window.begun);
    kept.at("lost").get_to(window.lost);
    if (!kept.at("before").is_null()) kept.at("before").get_to(window.before);
    if (!kept.at("latest").is_null()) kept.at("latest").get_to(window.latest);
    for (const auto& [name, move] :
         {std::pair{"mean_at", &window.mean_at}, {"log_sd_at", &window.log_sd_at}}) {
      if (!kept.contains(name)) continue;  // as in checkpoints of earlier versions
      kept.at(name).at(0).get_to(move->coordinate);
      kept.at(name).at(1).get_to(move->by);
    }
    if (kept.contains("left_before")) window.left_before = kept.at("left_before").get<double>();
    if (kept.contains("left_latest")) window.left_latest = kept.at("left_latest").get<double>();
  }
}

std::string hex(std::uint64_t number) { return fmt::format("{:016x}", number); }

std::uint64_t number_of_hex(const SafetensorsFile& file, const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number, 16);
  if (failure != std::errc() || hex(number) != text) {
    throw InputError(fmt::format("{}: metadata must have numbers of 16 hex digits, but one is not",
                                 file.origin));
  }
  return number;
}

std::string sites_text(const SiteManifest& sites) {
  nlohmann::ordered_json text = nlohmann::ordered_json::object();
  for (const auto& [client, round] : sites) text[hex(client)] = round;
  return text.dump();
}

SiteManifest read_sites(const SafetensorsFile& file, const std::string& text) {
  SiteManifest sites;
  const auto manifest = nlohmann::json::parse(shallow_json(text));
  for (const auto& [name, round] : manifest.items()) {
    sites[number_of_hex(file, name)] = round.get<std::int64_t>();
  }
  return sites;
}

std::string seals_text(const SiteSeals& seals) {
  nlohmann::ordered_json text = nlohmann::ordered_json::object();
  for (const auto& [client, seal] : seals) text[hex(client)] = hex(seal);
  return text.dump();
}

SiteSeals read_seals(const SafetensorsFile& file, const std::string& text) {
  SiteSeals seals;
  const auto read = nlohmann::json::parse(shallow_json(text));
  for (const auto& [name, seal] : read.items()) {
    seals[number_of_hex(file, name)] = number_of_hex(file, seal.get<std::string>());
  }
  return seals;
}

const std::string& metadata(const SafetensorsFile& file, const std::string& key) {
  const auto found = file.metadata.find(key);
  if (found == file.metadata.end()) {
    throw InputError(
        fmt::format("{}: checkpoint must have metadata {}, but has none", file.origin, key));
  }
  return found->second;
}

void expect_metadata(const SafetensorsFile& file, const std::string& key, std::string_view expected,
                     std::string_view meaning) {
  if (const std::string& came = metadata(file, key); came != expected) {
    throw InputError(
        fmt::format("{}: {} must be {}, but is {}", file.origin, meaning, expected, came));
  }
}

}  // namespace

void write_checkpoint(const std::filesystem::path& path, const Checkpoint& checkpoint,
                      const Layout& layout) {
  const ServerState& state = checkpoint.state;
  check_same_size("write_checkpoint", "slot names", state.optimizer.slots.size(),
                  checkpoint.slots.size());
  TensorWriter writer(layout);
  writer.add("", state.global);
  for (std::size_t i = 0; i < checkpoint.slots.size(); ++i) {
    writer.add(slot_prefix(checkpoint.slots[i]), state.optimizer.slots[i]);
  }
  if (state.unvisited.per_example.size() > 0) writer.add("unvisited.", state.unvisited.per_example);
  if (!is_flat(state.prior)) writer.add("prior.", state.prior);
  if (state.factors.size() > 0) writer.add("factors.", state.factors);
  if (state.initial.size() > 0) writer.add("initial.", state.initial.span());
  if (const ServerAverage& average = state.average; average.rounds > 0) {
    writer.add("average.mean.", average.mean.span());
    writer.add("average.variance.", average.variance.span());
    if (average.lambda.size() > 0) writer.add("average.lambda.", average.lambda.span());
  }
  if (const ConvergenceState& window = state.convergence; window.mean.size() > 0) {
    writer.add("window.mean.", window.mean.span());
    writer.add("window.deviation.", window.deviation.span());
  }
  write_safetensors(path, writer.tensors(),
                    {{"format", std::string(kFormat)},
                     {"format_version", std::string(kVersion)},
                     {"log", hex(checkpoint.log.value_or(0))},
                     {"model", model_hash(layout)},
                     {"numbers", numbers_text(state)},
                     {"optimizer_slots", nlohmann::json(checkpoint.slots).dump()},
                     {"recipe", checkpoint.recipe},
                     {"round", fmt::format("{}", state.round)},
                     {"site_seals", seals_text(checkpoint.seals)},
                     {"sites", sites_text(checkpoint.sites)}});
}

Checkpoint read_checkpoint(const std::filesystem::path& path, const Layout& layout) {
  const SafetensorsFile file = read_safetensors(path, Finite::required);
  expect_metadata(file, "format", kFormat, "format");
  const bool bound = metadata(file, "format_version") != kUnboundVersion;
  if (bound) expect_metadata(file, "format_version", kVersion, "format version");
  if (!file.checksums) {
    throw InputError(fmt::format("{}: checkpoint must have checksums, but somebody took them away",
                                 path.string()));
  }
  expect_metadata(file, "model", model_hash(layout), "hash of the model's tensors");
  const TensorReader reader(file, layout);
  Checkpoint checkpoint;
  ServerState& state = checkpoint.state;
  checkpoint.recipe = metadata(file, "recipe");
  try {
    read_numbers(metadata(file, "numbers"), state);
    checkpoint.sites = read_sites(file, metadata(file, "sites"));
    if (bound) {
      checkpoint.log = number_of_hex(file, metadata(file, "log"));
      checkpoint.seals = read_seals(file, metadata(file, "site_seals"));
    }
    nlohmann::json::parse(shallow_json(metadata(file, "optimizer_slots"))).get_to(checkpoint.slots);
  } catch (const nlohmann::json::exception&) {
    throw InputError(fmt::format("{}: metadata must be what a checkpoint has, but cannot be read",
                                 path.string()));
  }
  expect_metadata(file, "round", fmt::format("{}", state.round), "round");
  state.global = reader.message("");
  for (const std::string& slot : checkpoint.slots) {
    state.optimizer.slots.push_back(reader.message(slot_prefix(slot)));
  }
  if (reader.has("unvisited.eta.")) state.unvisited.per_example = reader.message("unvisited.");
  state.prior = reader.has("prior.eta.") ? reader.message("prior.")
                                         : flat_like(state.global.eta(), state.global.family());
  if (reader.has("factors.eta.")) state.factors = reader.message("factors.");
  if (reader.has("initial.")) state.initial = reader.vector("initial.");
  if (state.average.rounds > 0) {
    state.average.mean = reader.vector("average.mean.");
    state.average.variance = reader.vector("average.variance.");
    if (reader.has("average.lambda.")) state.average.lambda = reader.vector("average.lambda.");
  }
  if (reader.has("window.mean.")) {
    state.convergence.mean = reader.vector("window.mean.");
    state.convergence.deviation = reader.vector("window.deviation.");
  }
  return checkpoint;
}

}  // namespace fedep
