#include "bench/sparse_parts.h"

#include <algorithm>
#include <array>

#include "bench/stopwatch.h"
#include "fedep/model/layer/loss.h"
#include "fedep/sim/sparse/row_store.h"

namespace fedep {
namespace {

template <class Work>
double seconds_of(Work work) {
  const double before = read_clock(CLOCK_THREAD_CPUTIME_ID);
  work();
  return read_clock(CLOCK_THREAD_CPUTIME_ID) - before;
}

// What reading the clock adds to a part.
double clock_cost() {
  std::vector<double> times(1001);
  for (double& time : times) time = seconds_of([] {});
  return median(times);
}

constexpr std::size_t kParts = 5;

}  // namespace

SparseParts time_sparse_parts(const Dataset& data, std::size_t features,
                              const std::vector<std::vector<std::int64_t>>& batches) {
  const std::size_t outputs = data.info().outputs, steps = batches.size();
  const std::vector<float> theta((features + 1) * outputs, 0.0f), eta = theta;
  const RowsStart start{theta.data(), eta.data(), nullptr, 0.0f};
  const SgdNumbers numbers{.lr = 0.1f, .momentum = 0.9f, .per_example = 0.01f};
  StepMaps maps(numbers, 1.0f);
  maps.reach(steps);
  const RowLaw law{numbers, true, 1.0f, maps.without_gradient(), maps.after_gradient(), {}, 0};
  const double clock = clock_cost();
  std::array<std::vector<double>, kParts> times;
  for (int repeat = 0; repeat < 9; ++repeat) {
    std::array<double, kParts> spent{};
    const auto spend = [&](std::size_t part, auto work) {
      spent[part] += seconds_of(work) - clock;
    };
    KeptRows rows(features);
    StepPlans plans;
    RowStore store(outputs, {.lambda = false, .sum = false, .mean = true, .squares = false});
    spend(0, [&] {
      for (const auto& batch : batches) {
        const std::vector<std::uint32_t> examples(batch.begin(), batch.end());
        data.train_batch(0, examples, nullptr, plans.next_batch());
        plans.add(rows, 0);
      }
      plans.finish();
    });
    store.resize(rows.size());
    const std::vector<RowClock> clocks(rows.size());
    std::vector<float> z, y;
    for (std::size_t stripe = 0; stripe < store.stripes(); ++stripe) {
      spend(1, [&] { store.begin(stripe, rows, 0, start); });
      for (std::size_t i = 0; i < steps; ++i) {
        const StepPlan& plan = plans.steps()[i];
        z.resize(plan.batch.size * kStripe);
        y.resize(z.size());
        spend(2, [&] {
          store.catch_up(stripe, law, clocks, plans.steps(), i);
          store.logits(stripe, plan, z.data());
        });
        spend(3, [&] { logistic_delta(z, y, 1e-4f); });
        spend(4, [&] { store.descend(stripe, law, 1.0f, plans.steps(), i, z.data()); });
      }
    }
    for (std::size_t part = 0; part < kParts; ++part) {
      times[part].push_back(1e3 * spent[part] / double(steps));
    }
  }
  return {median(times[0]), median(times[1]), median(times[2]), median(times[3]), median(times[4])};
}

}  // namespace fedep
