#include "fedep/sim/gpu/cuda_order.h"

#include <algorithm>
#include <optional>

#include "fedep/cuda/device/parallel_for.h"
#include "fedep/sim/chain/fisher_pass.h"

namespace fedep {
namespace {

// Nobody takes anything. `at_once` neighbouring rows are a client's.
CohortOrder empty_order(const BatchRoom& room, const CohortRound& round, std::size_t steps,
                        std::size_t at_once = 1) {
  const std::size_t rows = room.clients * at_once;
  CohortOrder order{.clients = rows,
                    .rows = room.examples,
                    .examples = std::vector<std::uint32_t>(steps * rows * room.examples),
                    .counts = std::vector<std::int32_t>(steps * rows),
                    .own_steps = std::vector<std::uint32_t>(steps * rows),
                    .client = std::vector<std::size_t>(rows),
                    .augment = std::vector<Address>(rows),
                    .dropout = std::vector<Address>(rows)};
  for (std::size_t row = 0; row < round.visits.size() * at_once; ++row) {
    const std::size_t c = row / at_once;
    order.client[row] = round.visits[c].index;
    order.augment[row] = round.address(c, Purpose::augment, 0);
    order.dropout[row] = round.address(c, Purpose::dropout, 0);
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

ChainOrder chain_order(const BatchRoom& room, const CohortRound& round) {
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
  result.order = empty_order(room, round, epochs * result.epoch_length);
  for (std::size_t c = 0; c < clients; ++c) {
    const std::size_t own = result.own_batches[c];
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::size_t i = 0; i < own; ++i) {
        set_batch(result.order, epoch * result.epoch_length + i, c, batches[c][epoch][i],
                  epoch * own + i);
      }
    }
  }
  if (!settings.scheduled) return result;
  result.rates.assign(epochs * result.epoch_length * room.clients, 0.0f);
  for (std::size_t c = 0; c < clients; ++c) {
    const std::size_t own = result.own_batches[c];
    for (std::size_t epoch = 0; epoch < epochs; ++epoch) {
      for (std::size_t i = 0; i < own; ++i) {
        result.rates[(epoch * result.epoch_length + i) * room.clients + c] =
            rate_of_step(settings, epoch * own + i, epochs * own);
      }
    }
  }
  return result;
}

std::vector<Minibatches> fisher_passes(const CohortRound& round, int epochs) {
  std::vector<std::optional<Minibatches>> made(round.visits.size());
  parallel_for(made.size(), [&](std::size_t c) {
    made[c] = fisher_minibatches(round.address(c, Purpose::shuffle, kFisherSteps),
                                 round.visits[c].client.examples, epochs,
                                 std::size_t(round.settings.client.batch));
  });
  std::vector<Minibatches> passes;
  for (std::optional<Minibatches>& pass : made) passes.push_back(std::move(*pass));
  return passes;
}

CohortOrder fisher_order(const BatchRoom& room, const CohortRound& round,
                         const std::vector<Minibatches>& passes, const FisherRows& rows) {
  const std::size_t at_once = rows.at_once;
  std::size_t steps = 0;
  for (const Minibatches& pass : passes) steps = std::max(steps, pass.size());
  if (rows.of == FisherRows::Of::minibatches) steps = (steps + at_once - 1) / at_once;
  CohortOrder order = empty_order(room, round, steps, at_once);
  for (std::size_t step = 0; step < steps; ++step) {
    for (std::size_t row = 0; row < passes.size() * at_once; ++row) {
      const Minibatches& pass = passes[row / at_once];
      const int t = rows.minibatch(step, row % at_once);
      if (std::size_t(t) >= pass.size()) continue;
      set_batch(order, step, row, pass[std::size_t(t)], fisher_step(t, 0));
    }
  }
  return order;
}

}  // namespace fedep
