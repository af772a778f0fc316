#include "fedep/store/burn_in.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <system_error>
#include <utility>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/optim/optimizer.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"
#include "fedep/store/log/log_lines.h"
#include "fedep/store/log/run_log.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kState = ".safetensors";
constexpr std::string_view kRounds = ".jsonl";

std::string hash_of(std::string_view text) {
  return fmt::format("{:016x}", XXH3_64bits(text.data(), text.size()));
}

// How many of these are rounds 0, 1, … in turn.
std::int64_t rounds_in_turn(std::span<const RoundRecord> rounds) {
  std::int64_t next = 0;
  for (const RoundRecord& round : rounds) {
    if (round.round != next) break;
    ++next;
  }
  return next;
}

std::string text_of(std::span<const RoundRecord> rounds) {
  std::string text;
  for (const RoundRecord& round : rounds) text += line_of(round) + "\n";
  return text;
}

// {"kind":"burn_in","rounds":401,"xxh3":"…"}, the checksum of all that follows; then the rounds.
std::string first_line(std::int64_t rounds, std::string_view text) {
  return Json{{"kind", "burn_in"}, {"rounds", rounds}, {"xxh3", hash_of(text)}}.dump();
}

void write_rounds(const fs::path& path, std::span<const RoundRecord> rounds) {
  const std::string text = text_of(rounds);
  const std::string all = first_line(std::int64_t(rounds.size()), text) + "\n" + text;
  replace_file(path, std::as_bytes(std::span(all)));
}

std::vector<RoundRecord> read_rounds(const fs::path& path, std::int64_t rounds) {
  const std::vector<std::byte> bytes = read_file(path);
  const std::string_view all(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::size_t end = std::min(all.find('\n'), all.size());
  const std::string_view text = all.substr(std::min(end + 1, all.size()));
  if (all.substr(0, end) != first_line(rounds, text)) {
    throw InputError(
        fmt::format("{}: first line must have the number and the checksum of {} rounds, but has "
                    "not",
                    path.string(), rounds));
  }
  std::vector<RoundRecord> read = read_history(path).rounds;
  if (std::int64_t(read.size()) != rounds || rounds_in_turn(read) != rounds) {
    throw InputError(fmt::format("{}: file must hold rounds 0 to {} in turn, but holds {} of them",
                                 path.string(), rounds - 1, rounds_in_turn(read)));
  }
  return read;
}

}  // namespace

std::optional<Recipe> burn_in_of(const Recipe& recipe, std::int64_t rounds) {
  if (recipe.phases.empty() || recipe.phases[0].rounds < rounds) return std::nullopt;
  Recipe first = recipe;
  first.table.clear();
  first.row.clear();
  first.checkpoint = {};
  first.stop = {};
  first.phases.resize(1);
  PhaseSettings& phase = first.phases[0];
  if (phase.average && phase.average->kind == AverageKind::tail) {
    // Which rounds those are depends on the phase's length.
    if (rounds > phase.rounds - phase.average->rounds) return std::nullopt;
    phase.average.reset();
  }
  phase.rounds = int(rounds);
  if (phase.cooldown && rounds <= phase.cooldown->after) phase.cooldown.reset();  // has not begun
  const Algorithm& algorithm = find_algorithm(phase.algorithm);
  if (remembers(phase.cavity.value_or(algorithm.cavity))) return std::nullopt;
  first.server.factor_optimizer = first.server.optimizer;  // nobody has a factor
  if (algorithm.point_estimate && !phase.average) {        // so there are no draws to average
    first.evaluate.samples = 0;
    first.evaluate.marginal_every = 0;
  }
  return first;
}

SharedBurnIn::SharedBurnIn(fs::path folder, const Recipe& recipe, std::string origin,
                           const Layout& layout, std::function<void(std::string_view)> tell)
    : folder_(std::move(folder)),
      recipe_(recipe),
      origin_(std::move(origin)),
      layout_(layout),
      tell_(std::move(tell)),
      hash_(hash_of(depends_on(0))) {}

bool SharedBurnIn::can_share(std::int64_t rounds) const {
  std::int64_t all = 0;
  for (const PhaseSettings& phase : recipe_.phases) all += phase.rounds;
  // A run's last round is scored in its own way.
  return rounds > 0 && rounds < all && burn_in_of(recipe_, rounds).has_value();
}

// A recipe with the origin as comments, so that the checkpoint's recipe can be read as one.
std::string SharedBurnIn::depends_on(std::int64_t rounds) const {
  const std::optional<Recipe> first = burn_in_of(recipe_, rounds);
  if (!first) return {};
  std::string text;
  for (std::string_view rest = origin_; !rest.empty();) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    text += fmt::format("# {}\n", rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return text + to_toml(*first);
}

fs::path SharedBurnIn::file(std::int64_t rounds, std::string_view suffix) const {
  return folder_ / fmt::format("{}-{}{}", hash_, rounds, suffix);
}

// Those this recipe can begin with, the latest first.
std::vector<std::int64_t> SharedBurnIn::kept_rounds() const {
  std::vector<std::int64_t> rounds;
  std::error_code none;  // a folder that is not there has nothing
  for (const auto& entry : fs::directory_iterator(folder_, none)) {
    const std::string name = entry.path().filename().string();
    const std::string prefix = hash_ + "-";
    if (!name.starts_with(prefix) || !name.ends_with(kState)) continue;
    std::int64_t round = 0;
    const char* const end = name.data() + name.size() - kState.size();
    const auto [stopped, failure] = std::from_chars(name.data() + prefix.size(), end, round);
    if (failure == std::errc() && stopped == end && can_share(round)) rounds.push_back(round);
  }
  std::sort(rounds.rbegin(), rounds.rend());
  return rounds;
}

SharedBurnIn::Kept SharedBurnIn::read(std::int64_t rounds) const {
  const fs::path path = file(rounds, kState);
  Checkpoint checkpoint = read_checkpoint(path, layout_);
  if (checkpoint.recipe != depends_on(rounds)) {
    throw InputError(fmt::format(
        "{}: recipe, data, program and device must be this run's, but differ", path.string()));
  }
  if (checkpoint.state.round != rounds || checkpoint.state.phase != 0) {
    throw InputError(
        fmt::format("{}: state must be the one after {} rounds of the first phase, but is the one "
                    "after {} of phase {}",
                    path.string(), rounds, checkpoint.state.round, checkpoint.state.phase));
  }
  return {.state = std::move(checkpoint.state),
          .slots = std::move(checkpoint.slots),
          .rounds = read_rounds(file(rounds, kRounds), rounds)};
}

std::vector<RoundRecord> SharedBurnIn::adopt(const RunDirectory& directory,
                                             const RunHeader& header) const {
  const std::vector<std::int64_t> own = directory.checkpoints();
  for (const std::int64_t rounds : kept_rounds()) {
    if (!own.empty() && own.back() >= rounds) break;
    try {
      Kept kept = read(rounds);
      RunHeader own_header = header;
      own_header.shared_rounds = rounds;
      // The log first: a checkpoint needs its rounds there, a log without one is begun anew.
      const LogMark log = begin_log(directory.log(), own_header, kept.rounds);
      write_checkpoint(directory.checkpoint(rounds),
                       {std::move(kept.state), {}, to_toml(recipe_), std::move(kept.slots), log},
                       layout_);
      tell_(fmt::format("the first {} rounds are those of {}", rounds,
                        file(rounds, kState).string()));
      return std::move(kept.rounds);
    } catch (const InputError& error) {
      tell_(fmt::format("{}; not used, these rounds are played again", error.what()));
    }
  }
  return {};
}

void SharedBurnIn::keep(const ServerState& state, const Phase& phase,
                        std::span<const RoundRecord> rounds) const {
  if (state.phase != 0 || !can_share(state.round)) return;
  const auto slots = find_optimizer(phase.server_optimizer.name).slots(phase.server_optimizer);
  try {
    make_folder(folder_);
    write_rounds(file(state.round, kRounds), rounds);
    write_checkpoint(file(state.round, kState),
                     {state, {}, depends_on(state.round), {slots.begin(), slots.end()}}, layout_);
  } catch (const RunError& error) {
    tell_(fmt::format("{}; other result rows will play these rounds again", error.what()));
  }
}

}  // namespace fedep
