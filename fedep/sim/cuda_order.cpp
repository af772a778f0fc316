#include "fedep/sim/cuda_order.h"

#include <algorithm>
#include <optional>

#include "fedep/cuda/parallel_for.h"
#include "fedep/sim/fisher_pass.h"

namespace fedep {
namespace {

// Nobody takes anything.
CohortOrder empty_order(const CudaParts& parts, const CohortRound& round, std::size_t steps) {
  CohortOrder order{.clients = parts.clients,
                    .rows = parts.examples,
                    .examples = std::vector<std::uint32_t>(steps * parts.clients * parts.examples),
                    .counts = std::vector<std::int32_t>(steps * parts.clients),
                    .own_steps = std::vector<std::uint32_t>(steps * parts.clients),
                    .client = std::vector<std::size_t>(parts.clients),
                    .augment = std::vector<Address>(parts.clients),
                    .dropout = std::vector<Address>(parts.clients)};
  for (std::size_t c = 0; c < round.visits.size(); ++c) {
    order.client[c] = round.visits[c].index;
    order.augment[c] = round.address(c, Purpose::augment, 0);
    order.dropout[c] = round.address(c, Purpose::dropout, 0);
  }
  return order;
}

void set_batch(CohortOrder& order, std::size_t step, std::size_t c,
               std::span<const std::uint32_t> examples, std::size_t own_step) {
  const std::size_t i = step * order.clients + c;
  order.counts[i] = std::int32_t(examples.size());
  order.own_steps[i] = std::uint32_t(own_step);
  std::copy(examples.begin(), examples.end(),
            order.examples.begin() + std::ptrdiff_t(i * order.rows));
}

}  // namespace

Address CohortRound::address(std::size_t row, Purpose purpose, std::size_t step) const {
  return {.seed = seed,
          .purpose = purpose,
          .round = std::uint32_t(round),
          .client = visits[row].client.key,
          .step = std::uint32_t(step)};
}

ChainOrder chain_order(const CudaParts& parts, const CohortRound& round) {
  const ChainSettings& settings = round.settings;
  const std::size_t clients = round.visits.size();
  const std::size_t epochs = settings.pooled ? 1 : std::size_t(settings.client.epochs);
  const std::size_t copies = settings.pooled ? std::size_t(settings.client.epochs) : 1;
  std::vector<std::vector<Minibatches>> batches(clients);
  parallel_for(clients, [&](std::size_t c) {
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      batches[c].emplace_back(round.address(c, Purpose::shuffle, epoch),
                              round.visits[c].client.examples, copies,
                              std::size_t(settings.client.batch), settings.client.remainder);
    }
  });
  ChainOrder result;
  for (const std::vector<Minibatches>& own : batches) {
    result.own_batches.push_back(own.empty() ? 0 : own[0].size());
    result.epoch_length = std::max(result.epoch_length, result.own_batches.back());
  }
  result.order = empty_order(parts, round, epochs * result.epoch_length);
  for (std::size_t c = 0; c < clients; ++c) {
    const std::size_t own = result.own_batches[c];
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::size_t i = 0; i < own; ++i) {
        set_batch(result.order, epoch * result.epoch_length + i, c, batches[c][epoch][i],
                  epoch * own + i);
      }
    }
  }
  return result;
}

FisherOrder fisher_order(const CudaParts& parts, const CohortRound& round, int epochs) {
  const std::size_t clients = round.visits.size();
  std::vector<std::optional<Minibatches>> made(clients);
  parallel_for(clients, [&](std::size_t c) {
    made[c] = fisher_minibatches(round.address(c, Purpose::shuffle, kFisherSteps),
                                 round.visits[c].client.examples, epochs,
                                 std::size_t(round.settings.client.batch));
  });
  FisherOrder result;
  std::size_t most = 0;
  for (std::optional<Minibatches>& pass : made) {
    most = std::max(most, pass->size());
    result.passes.push_back(std::move(*pass));
  }
  result.order = empty_order(parts, round, most);
  for (std::size_t c = 0; c < clients; ++c) {
    for (std::size_t t = 0; t < result.passes[c].size(); ++t) {
      set_batch(result.order, t, c, result.passes[c][t], fisher_step(int(t), 0));
    }
  }
  return result;
}

}  // namespace fedep
