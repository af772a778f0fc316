// The server's arithmetic against the memory it runs in. Each line counts bytes read plus bytes
// written, as the mathematics needs them (an update in place reads and writes); the table at the
// end divides by what a plain copy of arrays of that size reaches in the same run. One core.
//
//   fedep_bench_micro                       the table; medians of 9 repetitions
//   fedep_bench_micro --benchmark_filter='copy|add'
#include <malloc.h>

#include <cstring>
#include <map>
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "fedep/message/record.h"
#include "fedep/optim/optimizer.h"
#include "fedep/round/aggregate.h"
#include "fedep/round/grid.h"
#include "fedep/round/server_average.h"
#include "fedep/round/server_state.h"

namespace fedep {
namespace {

constexpr std::size_t kSize = 11'200'000;  // ResNet-18's parameters; a diagonal message has twice
constexpr int kRepetitions = 9;
constexpr double kGoal = 0.6;
constexpr std::string_view kCopy = "copy";

// Values that are all different and need all of a float's bits.
HostVector<float> ramp(float scale) {
  HostVector<float> values(kSize);
  for (std::size_t i = 0; i < kSize; ++i) values[i] = scale * (float(i % 9973) / 9973 - 0.4f);
  return values;
}

Message diagonal_message(float scale) { return {ramp(scale), ramp(-scale)}; }

Grid grid_for_tests() {
  return choose_grid({}, {.clip = 0, .scale = 1, .asked = 20, .bits = 64}, diagonal_message(1));
}

GridDelta grid_delta() { return to_grid(grid_for_tests(), diagonal_message(1), 1.0).value(); }

void count_bytes(benchmark::State& state, double bytes_per_pass) {
  state.SetBytesProcessed(std::int64_t(double(state.iterations()) * bytes_per_pass));
}

void copy(benchmark::State& state) {
  const std::vector<std::int64_t> from(kSize, 1);
  std::vector<std::int64_t> to(kSize, 2);
  for (auto _ : state) {
    std::memcpy(to.data(), from.data(), kSize * sizeof(std::int64_t));
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2.0 * kSize * sizeof(std::int64_t));
}

void aggregate_add(benchmark::State& state) {
  const GridDelta delta = grid_delta();
  Aggregate sum(grid_for_tests(), kSize, Family::diagonal);
  for (auto _ : state) {
    sum.add(delta);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2.0 * kSize * 3 * sizeof(std::int64_t));
}

// What remains of a round once all deltas are there: the sum as a message, and one step.
void total_and_step(benchmark::State& state, const OptimizerSettings& settings) {
  Aggregate sum(grid_for_tests(), kSize, Family::diagonal);
  sum.add(grid_delta());
  Message global = diagonal_message(1);
  OptimizerState optimizer = initial_state(settings, global);
  for (auto _ : state) {
    const Message total = sum.total();
    advance(settings, optimizer, global, total);
    benchmark::ClobberMemory();
  }
  const double total = sizeof(std::int64_t) + sizeof(float);
  const double step = 5 * sizeof(float);  // reads g, slot, x; writes slot, x
  count_bytes(state, 2.0 * kSize * (total + step));
}

void step_alone(benchmark::State& state, const OptimizerSettings& settings) {
  const Message delta = diagonal_message(1e-3f);
  Message global = diagonal_message(1);
  OptimizerState optimizer = initial_state(settings, global);
  for (auto _ : state) {
    advance(settings, optimizer, global, delta);
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2.0 * kSize * 5 * sizeof(float));
}

const OptimizerSettings kSgd{.name = "sgd", .lr = 0.5, .momentum = 0.9};
const OptimizerSettings kAdagrad{.name = "adagrad", .lr = 0.1};

void sgd_step(benchmark::State& state) { step_alone(state, kSgd); }
void adagrad_step(benchmark::State& state) { step_alone(state, kAdagrad); }
void total_and_sgd_step(benchmark::State& state) { total_and_step(state, kSgd); }
void total_and_adagrad_step(benchmark::State& state) { total_and_step(state, kAdagrad); }

// What a server's average adds to a round of FedAvg: q's mean, and moments that follow it.
void average_step(benchmark::State& state) {
  Phase phase{.algorithm = &find_algorithm("fed_avg"), .rounds = 1'000'000'000};
  phase.average = AverageSettings{.rounds = 30};
  ServerState server;
  server.global = from_mean(ramp(1), 1.0f);
  for (auto _ : state) {
    follow_average(server.average, phase, server.round++, point_estimate(server), server.global);
    benchmark::ClobberMemory();
  }
  const double mean = 2, moments = 5;  // reads eta, writes the mean; reads all three, writes two
  count_bytes(state, kSize * (mean + moments) * sizeof(float));
}

void client_to_grid(benchmark::State& state) {
  const Grid grid = grid_for_tests();
  const Message delta = diagonal_message(1);
  for (auto _ : state) benchmark::DoNotOptimize(to_grid(grid, delta, 0.05));
  count_bytes(state, 2.0 * kSize * (sizeof(float) + sizeof(std::int64_t)));
}

void record_write(benchmark::State& state) {
  const HostVector<float> values = ramp(1);
  const std::vector<SectionView> sections{{"eta", values.span()}};
  std::vector<std::byte> bytes(record_size(sections));
  for (auto _ : state) {
    std::size_t end = 0;
    write_record(sections, [&](std::span<const std::byte> piece) {
      std::memcpy(bytes.data() + end, piece.data(), piece.size());
      end += piece.size();
    });
    benchmark::ClobberMemory();
  }
  count_bytes(state, 2.0 * kSize * sizeof(float));
}

void record_read(benchmark::State& state) {
  const HostVector<float> values = ramp(1);
  const std::vector<SectionView> sections{{"eta", values.span()}};
  const std::vector<std::byte> bytes = record_bytes(sections);
  for (auto _ : state) benchmark::DoNotOptimize(read_record(bytes));
  count_bytes(state, 2.0 * kSize * sizeof(float));
}

struct Measured {
  std::string_view name;
  void (*function)(benchmark::State&);
  bool has_goal;  // the server's arithmetic; the rest is shown beside it
};
constexpr Measured kAll[] = {
    {kCopy, copy, false},
    {"aggregate_add", aggregate_add, true},
    {"sgd_step", sgd_step, true},
    {"adagrad_step", adagrad_step, true},
    {"total_and_sgd_step", total_and_sgd_step, true},
    {"total_and_adagrad_step", total_and_adagrad_step, true},
    {"average_step", average_step, true},
    {"client_to_grid", client_to_grid, false},
    {"record_write", record_write, false},
    {"record_read", record_read, false},
};

// Prints as usual and remembers the medians.
class Medians final : public benchmark::ConsoleReporter {
 public:
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.aggregate_name != "median") continue;
      const auto speed = run.counters.find("bytes_per_second");
      if (speed != run.counters.end()) by_name_[run.run_name.function_name] = speed->second;
    }
    ConsoleReporter::ReportRuns(runs);
  }

  void print_table() const {
    const auto copied = by_name_.find(std::string(kCopy));
    if (copied == by_name_.end()) return;
    fmt::print("\n{:<24}{:>10}{:>12}\n", "median", "GB/s", "of a copy");
    for (const Measured& measured : kAll) {
      const auto found = by_name_.find(std::string(measured.name));
      if (found == by_name_.end()) continue;
      const double ratio = found->second / copied->second;
      const bool below = measured.has_goal && ratio < kGoal;
      fmt::print("{:<24}{:>10.2f}{:>12.2f}{}\n", measured.name, found->second / 1e9, ratio,
                 below ? fmt::format("  below {}", kGoal) : "");
    }
  }

 private:
  std::map<std::string, double> by_name_;
};

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  mallopt(M_MMAP_MAX, 0);  // as app/main.cpp has it: freed memory is used again
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  for (const fedep::Measured& measured : fedep::kAll) {
    benchmark::RegisterBenchmark(std::string(measured.name).c_str(), measured.function)
        ->Unit(benchmark::kMillisecond)
        ->MinTime(0.2)
        ->Repetitions(fedep::kRepetitions)
        ->ReportAggregatesOnly();
  }
  fedep::Medians medians;
  benchmark::RunSpecifiedBenchmarks(&medians);
  medians.print_table();
}
