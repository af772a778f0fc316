#include "fedep/data/partition.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/message/check.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

constexpr double kGone = -std::numeric_limits<double>::infinity();

// Logarithm of a Gamma(shape, 1) draw: the draw itself underflows for small shapes.
// Marsaglia & Tsang (2000); a shape below one is reduced to shape + 1.
double log_gamma_draw(Stream& stream, double shape) {
  if (shape < 1) {
    const double above = log_gamma_draw(stream, shape + 1);
    return above + std::log(stream.uniform()) / shape;
  }
  const double d = shape - 1.0 / 3.0;
  const double c = 1.0 / std::sqrt(9.0 * d);
  while (true) {
    const double x = stream.normal();
    const double root = 1.0 + c * x;
    if (root <= 0) continue;
    const double v = root * root * root;
    if (std::log(stream.uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) {
      return std::log(d * v);
    }
  }
}

// A law over outcomes that can leave it, drawn from a Dirichlet distribution. Weights are kept as
// logarithms, so that what remains can be renormalised however unlikely it was.
class LeavingLaw {
 public:
  LeavingLaw(Stream& stream, std::span<const double> concentrations) {
    for (const double a : concentrations) {
      log_weights_.push_back(a > 0 ? log_gamma_draw(stream, a) : kGone);
    }
    renormalise();
  }

  bool empty() const { return total_ == 0; }

  std::size_t draw(Stream& stream) const {
    double left = stream.uniform() * total_;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      last = i;
      left -= weights_[i];
      if (left < 0) break;
    }
    return last;
  }

  void drop(std::size_t outcome) {
    log_weights_[outcome] = kGone;
    renormalise();
  }

 private:
  void renormalise() {
    const double top =
        log_weights_.empty() ? kGone : *std::max_element(log_weights_.begin(), log_weights_.end());
    weights_.assign(log_weights_.size(), 0.0);
    if (top == kGone) {
      total_ = 0;
      return;
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) weights_[i] = std::exp(log_weights_[i] - top);
    total_ = std::accumulate(weights_.begin(), weights_.end(), 0.0);
  }

  std::vector<double> log_weights_;
  std::vector<double> weights_;  // relative to the largest
  double total_ = 0;
};

Address address_of(const PartitionPlan& plan, std::uint64_t client) {
  return {.seed = plan.seed,
          .purpose = Purpose::partition,
          .round = plan.part,
          .client = client,
          .step = 0};
}

Stream pool_stream(const PartitionPlan& plan) { return Stream(address_of(plan, 0)); }
Stream client_stream(const PartitionPlan& plan, std::size_t client) {
  return Stream(address_of(plan, client_key(std::to_string(client))));
}

std::size_t size_of_client(std::size_t examples, const PartitionPlan& plan, std::size_t client) {
  return examples / plan.clients + (client < examples % plan.clients ? 1 : 0);
}

void check_plan(std::string_view function, std::size_t examples, const PartitionPlan& plan) {
  if (plan.clients == 0 || plan.clients > examples) {
    fail(function, "clients", fmt::format("1 to {}, the number of examples", examples),
         fmt::format("{}", plan.clients));
  }
}

// Examples of each label, in random order: taking the last is drawing without replacement.
std::vector<std::vector<std::uint32_t>> shuffled_pools(std::string_view function,
                                                       std::span<const std::int32_t> labels,
                                                       const PartitionPlan& plan) {
  Stream stream = pool_stream(plan);
  std::vector<std::vector<std::uint32_t>> pools;
  for (const std::uint32_t example : permutation(stream, labels.size())) {
    const std::int32_t label = labels[example];
    if (label < 0) fail(function, "label", "zero or positive", fmt::format("{}", label));
    if (std::size_t(label) >= pools.size()) pools.resize(std::size_t(label) + 1);
    pools[std::size_t(label)].push_back(example);
  }
  return pools;
}

std::uint32_t take(std::vector<std::uint32_t>& pool) {
  const std::uint32_t example = pool.back();
  pool.pop_back();
  return example;
}

}  // namespace

Partition iid_partition(std::size_t examples, const PartitionPlan& plan) {
  check_plan("iid_partition", examples, plan);
  Stream stream = pool_stream(plan);
  const std::vector<std::uint32_t> order = permutation(stream, examples);
  Partition partition(plan.clients);
  auto next = order.begin();
  for (std::size_t c = 0; c < plan.clients; ++c) {
    const auto end = next + std::ptrdiff_t(size_of_client(examples, plan, c));
    partition[c].assign(next, end);
    next = end;
  }
  return partition;
}

Partition dirichlet_partition(std::span<const std::int32_t> labels, double concentration,
                              const PartitionPlan& plan) {
  check_plan("dirichlet_partition", labels.size(), plan);
  check_positive("dirichlet_partition", "concentration", concentration);
  auto pools = shuffled_pools("dirichlet_partition", labels, plan);
  std::vector<double> concentrations;
  const double classes =
      double(std::count_if(pools.begin(), pools.end(), [](const auto& p) { return !p.empty(); }));
  for (const auto& pool : pools) {
    concentrations.push_back(concentration * classes * double(pool.size()) / double(labels.size()));
  }

  Partition partition(plan.clients);
  for (std::size_t c = 0; c < plan.clients; ++c) {
    Stream stream = client_stream(plan, c);
    LeavingLaw law(stream, concentrations);
    for (std::size_t label = 0; label < pools.size(); ++label) {
      if (pools[label].empty()) law.drop(label);
    }
    const std::size_t size = size_of_client(labels.size(), plan, c);
    while (partition[c].size() < size) {
      const std::size_t label = law.draw(stream);
      partition[c].push_back(take(pools[label]));
      if (pools[label].empty()) law.drop(label);
    }
  }
  return partition;
}

Partition pachinko_partition(std::span<const std::int32_t> coarse,
                             std::span<const std::int32_t> fine, double coarse_concentration,
                             double fine_concentration, const PartitionPlan& plan) {
  constexpr std::string_view kName = "pachinko_partition";
  check_same_size(kName, "coarse labels", fine.size(), coarse.size());
  check_plan(kName, fine.size(), plan);
  check_positive(kName, "coarse concentration", coarse_concentration);
  check_positive(kName, "fine concentration", fine_concentration);
  auto pools = shuffled_pools(kName, fine, plan);

  // The tree: fine labels below each coarse one.
  std::vector<std::int32_t> parent(pools.size(), -1);
  std::vector<std::vector<std::size_t>> children;
  for (std::size_t i = 0; i < fine.size(); ++i) {
    std::int32_t& above = parent[std::size_t(fine[i])];
    if (above == coarse[i]) continue;
    if (above >= 0 || coarse[i] < 0) {
      fail(kName, fmt::format("coarse label of fine label {}", fine[i]),
           above >= 0 ? fmt::format("{} everywhere", above) : "zero or positive",
           fmt::format("{}", coarse[i]));
    }
    above = coarse[i];
    if (std::size_t(above) >= children.size()) children.resize(std::size_t(above) + 1);
    children[std::size_t(above)].push_back(std::size_t(fine[i]));
  }
  for (auto& labels : children) std::sort(labels.begin(), labels.end());

  std::vector<double> top_concentrations;
  for (const auto& labels : children) {
    top_concentrations.push_back(labels.empty() ? 0.0 : coarse_concentration);
  }
  Partition partition(plan.clients);
  for (std::size_t c = 0; c < plan.clients; ++c) {
    Stream stream = client_stream(plan, c);
    LeavingLaw top(stream, top_concentrations);
    std::vector<LeavingLaw> below;
    for (const auto& labels : children) {
      below.emplace_back(stream, std::vector<double>(labels.size(), fine_concentration));
    }
    // What ran out leaves, here and above.
    const auto leave = [&](std::size_t above, std::size_t place) {
      below[above].drop(place);
      if (below[above].empty()) top.drop(above);
    };
    for (std::size_t above = 0; above < children.size(); ++above) {
      for (std::size_t place = 0; place < children[above].size(); ++place) {
        if (pools[children[above][place]].empty()) leave(above, place);
      }
    }
    const std::size_t size = size_of_client(fine.size(), plan, c);
    while (partition[c].size() < size) {
      const std::size_t above = top.draw(stream);
      const std::size_t place = below[above].draw(stream);
      auto& pool = pools[children[above][place]];
      partition[c].push_back(take(pool));
      if (pool.empty()) leave(above, place);
    }
  }
  return partition;
}

Partition read_partition(std::string_view dataset, const std::filesystem::path& path,
                         std::size_t per_client, std::size_t examples) {
  const std::vector<std::uint8_t> bytes = read_data_file(dataset, path);
  const auto refuse = [&](std::string_view thing, std::string_view expected,
                          const std::string& came) {
    fail(fmt::format("{}: {}", dataset, path.string()), thing, expected, came);
  };
  if (per_client == 0 || bytes.empty() || bytes.size() % (4 * per_client) != 0) {
    refuse("size",
           fmt::format("a multiple of {} bytes, {} examples a client", 4 * per_client, per_client),
           fmt::format("{} bytes", bytes.size()));
  }
  std::vector<bool> used(examples);
  Partition partition(bytes.size() / (4 * per_client));
  for (std::size_t i = 0; i < bytes.size() / 4; ++i) {
    const std::int32_t index = little_i32(bytes.data() + 4 * i);
    if (index < 0 || std::size_t(index) >= examples) {
      refuse(fmt::format("entry {}", i), fmt::format("in [0, {})", examples),
             fmt::format("{}", index));
    }
    if (used[std::size_t(index)]) {
      refuse(fmt::format("entry {}", i), "an example not given out before",
             fmt::format("{}", index));
    }
    used[std::size_t(index)] = true;
    partition[i / per_client].push_back(std::uint32_t(index));
  }
  return partition;
}

std::vector<std::size_t> limit_clients(Partition& partition, const DataSettings& settings) {
  const std::size_t least = std::size_t(std::max(settings.min_examples, 1));
  std::vector<std::size_t> kept;
  Partition limited;
  for (std::size_t c = 0; c < partition.size(); ++c) {
    auto& examples = partition[c];
    if (examples.size() < least) continue;
    if (settings.max_examples > 0 && examples.size() > std::size_t(settings.max_examples)) {
      examples.resize(std::size_t(settings.max_examples));
    }
    kept.push_back(c);
    limited.push_back(std::move(examples));
  }
  partition = std::move(limited);
  return kept;
}

void check_clients_left(std::string_view dataset, std::size_t clients,
                        const DataSettings& settings) {
  if (clients > 0) return;
  throw InputError(fmt::format(
      "{}: some client must have at least {} examples (data.min_examples), but none has", dataset,
      settings.min_examples));
}

std::size_t test_client_count(std::size_t clients, std::size_t train, std::size_t test) {
  if (test == 0 || train == 0) return 0;
  const double count = double(clients) * double(test) / double(train);
  return std::clamp<std::size_t>(std::size_t(std::llround(count)), 1, test);
}

}  // namespace fedep
