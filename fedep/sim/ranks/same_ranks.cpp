#include "fedep/sim/ranks/same_ranks.h"

#include <algorithm>
#include <bit>
#include <memory>
#include <ranges>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/fingerprint.h"
#include "fedep/message/error.h"
#include "fedep/message/read_file.h"
#include "fedep/model/blas.h"
#include "fedep/round/collector.h"
#include "fedep/round/play_round.h"
#include "fedep/sim/chain/chain.h"
#include "fedep/sim/machine.h"

namespace fedep {
namespace {

// The smallest client that has a batch; where none has one, the largest.
std::size_t client_to_visit(const ClientSettings& settings, const Population& population) {
  const auto cost = [&](std::size_t client) {
    const auto examples = std::int64_t(population[client].examples);
    const bool steps = makes_steps(settings, false, std::size_t(examples));
    return std::pair(!steps, steps ? examples : -examples);
  };
  return *std::ranges::min_element(std::views::iota(std::size_t(0), population.size()), {}, cost);
}

// Plays one client in place of those asked, with the weight of one of them, and remembers what came of it.
class OneVisit final : public Executor {
 public:
  OneVisit(Task& task, std::size_t client)
      : task_(task), client_(client), inference_(task.make_inference()) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    ClientTask asked = clients.front();
    asked.client = client_;
    const auto nowhere = make_memory_store();
    const Report report =
        play_visit(round, asked, task_.population()[client_], nowhere.get(), *inference_);
    // A delta that does not fit the grid is not in the report, but its norm is.
    add(fingerprint(std::as_bytes(std::span(report.delta.eta))));
    add(fingerprint(std::as_bytes(std::span(report.delta.lambda))));
    add(std::bit_cast<std::uint64_t>(report.numbers.loss_sum));
    add(std::bit_cast<std::uint64_t>(report.numbers.delta_norm));
    return Collector(round).all();
  }
  void settle(const RoundTask&, std::span<const std::size_t>, const StepPart&) override {}

  std::uint64_t hash = 0;

 private:
  void add(std::uint64_t number) { hash = 0x9e3779b97f4a7c15 * hash + number; }

  Task& task_;
  std::size_t client_;
  std::unique_ptr<LocalInference> inference_;
};

// Visits of both compute alike.
bool is_same_method(const Phase& a, const Phase& b) {
  return a.algorithm == b.algorithm && a.inference == b.inference && a.family == b.family;
}

constexpr char kEnd = '\0';  // of a name or value

Bytes pack(std::span<const Fact> facts) {
  std::string text;
  for (const Fact& fact : facts) text += fact.name + kEnd + fact.value + kEnd;
  return bytes_of(std::span<const char>(text));
}

std::vector<std::string_view> unpack(const Bytes& bytes) {
  std::vector<std::string_view> texts;
  std::string_view rest(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  while (!rest.empty()) {
    texts.push_back(rest.substr(0, rest.find(kEnd)));
    rest.remove_prefix(std::min(rest.size(), texts.back().size() + 1));
  }
  return texts;
}

// The first line in which two texts differ, of each.
std::pair<std::string_view, std::string_view> first_difference(std::string_view a,
                                                               std::string_view b) {
  while (true) {
    const std::string_view line_a = a.substr(0, a.find('\n')), line_b = b.substr(0, b.find('\n'));
    const bool last = line_a.size() == a.size() || line_b.size() == b.size();
    if (line_a != line_b || last) return {line_a, line_b};
    a.remove_prefix(line_a.size() + 1);
    b.remove_prefix(line_b.size() + 1);
  }
}

std::string difference(const Fact& fact, std::size_t rank, std::string_view host,
                       std::string_view theirs, std::string_view first) {
  const auto [here, there] = first_difference(theirs, first);
  return fmt::format(
      "{} must be the same on all ranks, but on rank {} ({}) is \"{}\", and on rank 0 \"{}\"",
      fact.name, rank, host, here, there);
}

}  // namespace

std::uint64_t first_visit_hash(const Recipe& recipe, const std::vector<Phase>& phases, Task& task) {
  OneVisit visit(task, client_to_visit(recipe.client, task.population()));
  for (auto phase = phases.begin(); phase != phases.end(); ++phase) {
    const auto same = [&](const Phase& earlier) { return is_same_method(earlier, *phase); };
    if (std::any_of(phases.begin(), phase, same)) continue;
    ServerState state =
        begin_phase(initial_server_state(recipe.server, task.initial_weights(), task.priors()),
                    *phase, phase - phases.begin(), task.population());
    state.round = phase->first_round;
    play_round(state, *phase, recipe.seed, task.population(), visit);
  }
  return visit.hash;
}

std::vector<Fact> arithmetic_of(const Recipe& recipe, const std::vector<Phase>& phases,
                                Task& task) {
  const auto hex = [](std::uint64_t hash) { return fmt::format("{:016x}", hash); };
  return {{"CPU model", cpu_model(), true},
          {"BLAS kernel", blas_kernel(), true},
          {"program", hex(fingerprint(read_file("/proc/self/exe"))), true},
          {"a first visit", hex(first_visit_hash(recipe, phases, task)), true}};
}

std::vector<std::string> compare_ranks(Ranks& ranks, std::span<const Fact> facts, bool mixed) {
  const std::string own_host = ranks.host();
  const std::vector<Bytes> hosts = ranks.gather(bytes_of(std::span<const char>(own_host)));
  const std::vector<Bytes> all = ranks.gather(pack(facts));
  const std::vector<std::string_view> first = unpack(all[0]);
  std::vector<std::string> differences;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    for (std::size_t rank = 1; rank < all.size(); ++rank) {
      const std::vector<std::string_view> theirs = unpack(all[rank]);
      if (theirs.size() == first.size() && theirs[2 * i + 1] == first[2 * i + 1]) continue;
      const std::string_view host(reinterpret_cast<const char*>(hosts[rank].data()),
                                  hosts[rank].size());
      const std::string what =
          difference(facts[i], rank, host, theirs.at(2 * i + 1), first.at(2 * i + 1));
      if (!facts[i].arithmetic) throw InputError(what);
      if (!mixed) {
        throw InputError(what + "; --mixed-cpus plays on, to bits that depend on who plays whom");
      }
      differences.push_back(what);
      break;  // one rank is enough to say
    }
  }
  return differences;
}

}  // namespace fedep
