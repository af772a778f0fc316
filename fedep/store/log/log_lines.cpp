#include "fedep/store/log/log_lines.h"

#include <cmath>
#include <string_view>
#include <type_traits>

#include "fedep/message/check.h"
#include "fedep/message/parse_json.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

const Json* find_field(const Json& line, const char* name) {
  const auto found = line.find(name);
  return found != line.end() ? &*found : nullptr;
}

// What is there as it should be goes into `value`; else that stays as it is.
void read(const Json& line, const char* name, std::string& value) {
  const Json* field = find_field(line, name);
  if (field != nullptr && field->is_string()) value = field->get<std::string>();
}

// 1.5 is no round, and 1e300 no number of clients.
template <class Number>
void read(const Json& line, const char* name, Number& value) {
  const Json* field = find_field(line, name);
  const bool fits = field != nullptr &&
                    (std::is_integral_v<Number> ? field->is_number_integer() : field->is_number());
  if (fits) value = field->get<Number>();
}

void read(const Json& line, const char* name, std::optional<double>& value) {
  const Json* field = find_field(line, name);
  if (field == nullptr || !(field->is_number() || field->is_null())) return;
  value = field->is_number() ? field->get<double>() : std::nan("");
}

// What a round without scores says; everything else on a round's line is a score.
bool is_own_field(const std::string& name) {
  static const RoundRecord every{.condition = 1,
                                 .start_precision = 1,
                                 .factor_gap_eta = 1,
                                 .factor_gap_lambda = 1,
                                 .window = 1,
                                 .window_end = WindowEnd{.judged = false, .left = MovesLeft{}}};
  static const Json own = Json::parse(line_of(every));
  return own.contains(name);
}

RunHeader header_in(const Json& line) {
  RunHeader header;
  read(line, "recipe", header.recipe);
  read(line, "seed", header.seed);
  read(line, "clients", header.clients);
  read(line, "data", header.data);
  read(line, "version", header.version);
  read(line, "machine", header.machine);
  read(line, "device", header.device);
  read(line, "remark", header.remark);
  read(line, "shared_rounds", header.shared_rounds);
  return header;
}

// Null is infinity: q was improper.
std::optional<WindowEnd> window_end_in(const Json& line) {
  if (find_field(line, "mean_moved") == nullptr) return std::nullopt;
  WindowEnd end;
  read(line, "mean_moved", end.mean_moved);
  read(line, "log_sd_moved", end.log_sd_moved);
  const Json* judged = find_field(line, "judged");
  end.judged = judged == nullptr || !judged->is_boolean() || judged->get<bool>();
  MovesLeft left{.mean = std::nan(""), .log_sd = std::nan("")};
  read(line, "mean_left", left.mean);
  read(line, "log_sd_left", left.log_sd);
  if (!std::isnan(left.mean) && !std::isnan(left.log_sd)) end.left = left;
  return end;
}

RoundRecord round_in(const Json& line) {
  RoundRecord round;
  read(line, "round", round.round);
  read(line, "phase", round.phase);
  read(line, "clients", round.clients);
  read(line, "dropped", round.dropped);
  read(line, "outside_grid", round.outside_grid);
  read(line, "diverged", round.diverged);
  read(line, "skipped", round.skipped);
  read(line, "clipped", round.clipped);
  read(line, "guarded", round.guarded);
  read(line, "step_scale", round.step_scale);
  read(line, "condition", round.condition);
  read(line, "start_precision", round.start_precision);
  read(line, "factor_gap_eta", round.factor_gap_eta);
  read(line, "factor_gap_lambda", round.factor_gap_lambda);
  read(line, "client_steps", round.client_steps);
  read(line, "bytes_up", round.bytes_up);
  read(line, "bytes_down", round.bytes_down);
  read(line, "seconds", round.seconds);
  read(line, "train_loss", round.train_loss);
  read(line, "window", round.window);
  round.window_end = window_end_in(line);
  for (const auto& [name, value] : line.items()) {
    if (is_own_field(name) || !(value.is_number() || value.is_null())) continue;
    round.scores.emplace_back(name, value.is_number() ? value.get<double>() : std::nan(""));
  }
  return round;
}

RunEndRecord end_in(const Json& line) {
  RunEndRecord end;
  read(line, "rounds", end.rounds);
  read(line, "seconds", end.seconds);
  read(line, "improper", end.improper);
  return end;
}

LogLine parse_line(std::string_view text) {
  LogLine line{std::string(text), BadLine{}};
  const Json json = find_json(text).value_or(nullptr);
  if (!json.is_object() || !json.contains("kind") || !json["kind"].is_string()) return line;
  const auto& kind = json["kind"].get_ref<const std::string&>();
  if (kind == "run") {
    line.said = header_in(json);
  } else if (kind == "round") {
    line.said = round_in(json);
  } else if (kind == "end") {
    line.said = end_in(json);
  } else {
    line.said = OtherLine{};
  }
  return line;
}

}  // namespace

std::string line_of(const RunHeader& header) {
  Json line{{"kind", "run"},
            {"recipe", header.recipe},
            {"seed", header.seed},
            {"clients", header.clients},
            {"data", header.data},
            {"version", header.version},
            {"machine", header.machine},
            {"device", header.device}};
  if (!header.remark.empty()) line["remark"] = header.remark;
  if (header.shared_rounds > 0) line["shared_rounds"] = header.shared_rounds;
  return line.dump();
}

std::string line_of(const RoundRecord& round) {
  Json line{{"kind", "round"},
            {"round", round.round},
            {"phase", round.phase},
            {"clients", round.clients},
            {"dropped", round.dropped},
            {"outside_grid", round.outside_grid},
            {"diverged", round.diverged},
            {"skipped", round.skipped},
            {"clipped", round.clipped},
            {"guarded", round.guarded},
            {"step_scale", round.step_scale},
            {"client_steps", round.client_steps},
            {"bytes_up", round.bytes_up},
            {"bytes_down", round.bytes_down},
            {"seconds", round.seconds},
            {"train_loss", number_or_null(round.train_loss)}};
  if (round.condition != 0) line["condition"] = number_or_null(round.condition);
  if (!std::isnan(round.factor_gap_eta)) {
    line["factor_gap_eta"] = number_or_null(round.factor_gap_eta);
    line["factor_gap_lambda"] = number_or_null(round.factor_gap_lambda);
  }
  if (round.start_precision) line["start_precision"] = number_or_null(*round.start_precision);
  if (round.window > 0) line["window"] = round.window;
  if (const auto& end = round.window_end) {
    line["mean_moved"] = number_or_null(end->mean_moved);
    line["log_sd_moved"] = number_or_null(end->log_sd_moved);
    if (!end->judged) line["judged"] = false;
    if (end->left) {
      line["mean_left"] = end->left->mean;
      line["log_sd_left"] = end->left->log_sd;
    }
  }
  for (const auto& [name, value] : round.scores) line[name] = number_or_null(value);
  return line.dump();
}

std::string line_of(const RunEndRecord& end) {
  Json line{{"kind", "end"}, {"rounds", end.rounds}, {"seconds", end.seconds}};
  if (end.improper > 0) line["improper"] = end.improper;
  return line.dump();
}

LogLines read_log_lines(const std::filesystem::path& log) {
  const std::vector<std::byte> bytes = read_file(log);
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  LogLines out;
  for (std::size_t end = rest.find('\n'); end != rest.npos; end = rest.find('\n')) {
    out.lines.push_back(parse_line(rest.substr(0, end)));
    rest.remove_prefix(end + 1);
  }
  out.cut_off = !rest.empty();
  return out;
}

std::vector<LogLine> read_good_lines(const std::filesystem::path& log) {
  std::vector<LogLine> lines = read_log_lines(log).lines;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (!std::holds_alternative<BadLine>(lines[i].said)) continue;
    throw InputError(fmt::format("{}:{}: line must be a JSON object with a kind, but is not",
                                 log.string(), i + 1));
  }
  return lines;
}

}  // namespace fedep
