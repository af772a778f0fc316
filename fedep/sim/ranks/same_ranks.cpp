#include "fedep/sim/ranks/same_ranks.h"

#include <algorithm>
#include <memory>
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
#include "fedep/sim/machine.h"

namespace fedep {
namespace {

// Plays one of the clients asked, and remembers what it sent.
class OneVisit final : public Executor {
 public:
  explicit OneVisit(Task& task) : task_(task), inference_(task.make_inference()) {}

  Answers play(const RoundTask& round, std::span<const ClientTask> clients) override {
    const Population& population = task_.population();
    const auto smallest = std::ranges::min_element(clients, {}, [&](const ClientTask& task) {
      const std::size_t examples = population[task.client].examples;
      return std::pair(examples == 0, examples);
    });
    const auto nowhere = make_memory_store();
    const Report report =
        play_visit(round, *smallest, population[smallest->client], nowhere.get(), *inference_);
    hash = fingerprint(std::as_bytes(std::span(report.delta.eta))) ^
           (3 * fingerprint(std::as_bytes(std::span(report.delta.lambda)))) ^
           (5 * std::uint64_t(report.outcome));
    return Collector(round).all();
  }
  void settle(const RoundTask&, std::span<const std::size_t>, const StepPart&) override {}

  std::uint64_t hash = 0;

 private:
  Task& task_;
  std::unique_ptr<LocalInference> inference_;
};

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
  ServerState state =
      begin_phase(initial_server_state(recipe.server, task.initial_weights(), task.priors()),
                  phases.front(), 0, task.population());
  OneVisit visit(task);
  play_round(state, phases.front(), recipe.seed, task.population(), visit);
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
