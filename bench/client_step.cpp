// A client-step (batch, forward, backward, prior term, momentum SGD) in the simulator's chains
// against the same steps in eager libtorch (eager_step.h), one thread, same BLAS, same batches.
// Repeats are interleaved; the table has medians of the thread's CPU time and of wall time. Below
// it: where our steps spend their time, what augmentation and PCA cost apart, and two threads
// against two processes.
//
//   fedep_bench_steps [linear_small|linear_large|sparse|sparse_titles|cnn|resnet18|parts|threads ...]     none: all
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "bench/eager_step.h"
#include "bench/prepare_batch.h"
#include "bench/sparse_parts.h"
#include "bench/stopwatch.h"
#include "bench/timed_client.h"
#include "fedep/model/blas.h"
#include "fedep/sim/process.h"

namespace fedep {
namespace {

using V = HostVector<float>;

struct Medians {
  std::vector<double> cpu, wall;

  void add(const Seconds& seconds, double per) {
    cpu.push_back(seconds.cpu / per);
    wall.push_back(seconds.wall / per);
  }
};

void print_ratio(const Case& task) {
  Client client(task);
  EagerSettings settings = client.peer_settings();
  const auto by_hand =
      make_eager_peer(task.peer, client.rows(), task.features, task.outputs, settings);
  settings.prior_in_loss = true;
  const auto by_optimizer =
      make_eager_peer(task.peer, client.rows(), task.features, task.outputs, settings);
  const auto batches = client.batches();
  const double steps = double(client.steps());
  // From the same start; later repeats go on from there.
  const double eager_loss = by_hand->run(batches), other_loss = by_optimizer->run(batches);
  Medians ours, visit, hand, optimizer;
  for (int repeat = 0; repeat < task.repeats; ++repeat) {
    const Client::Visited visited = client.visit();
    ours.add(visited.steps, steps);
    visit.add(visited.whole, steps);
    hand.add(time_of([&] { by_hand->run(batches); }), steps);
    optimizer.add(time_of([&] { by_optimizer->run(batches); }), steps);
    for (const double loss : {eager_loss, other_loss}) {
      if (task.same_loss && std::abs(visited.loss_sum - loss) > 1e-3 * loss) {
        fmt::print("{}: not the same work: loss {} against {}\n", task.name, visited.loss_sum,
                   loss);
      }
    }
  }
  const auto line = [&](const char* clock, std::vector<double> Medians::*times) {
    const double step = median(ours.*times), whole = median(visit.*times);
    const double eager = median(hand.*times), other = median(optimizer.*times);
    fmt::print("{:<14}{:>6}{:>10.3f}{:>12.3f}{:>11.3f}{:>11.3f}{:>9.2f}{:>9.2f}{:>9.2f}{:>6}\n",
               task.name, clock, 1e3 * step, 1e3 * whole, 1e3 * eager, 1e3 * other, eager / step,
               other / step, eager / whole, task.goal);
  };
  line("cpu", &Medians::cpu);
  line("wall", &Medians::wall);
  std::fflush(stdout);
}

// Milliseconds of CPU, the median of several calls.
double milliseconds(const std::function<void()>& work) {
  std::vector<double> times;
  work();
  double total = 0;
  while (times.size() < 5 || (total < 0.3 && times.size() < 200)) {
    times.push_back(time_of(work).cpu);
    total += times.back();
  }
  return 1e3 * median(times);
}

// The parts of a step, each by itself, hot in the cache as they would be.
void print_parts(const Case& task) {
  Client client(task);
  Model& model = client.model();
  const V theta = client.start_point();
  V momentum(theta.size());
  std::vector<std::uint32_t> indices(task.batch);
  for (std::size_t i = 0; i < task.batch; ++i) indices[i] = std::uint32_t(i * 7 % task.examples);
  Batch batch;
  client.data().train_batch(0, indices, nullptr, batch);
  std::vector<float> logits(task.batch * task.outputs), eta(theta.size()), lambda{1.0f};
  const Address dropout{.seed = 1, .purpose = Purpose::dropout};
  const double gather =
      milliseconds([&] { client.data().train_batch(0, indices, nullptr, batch); });
  const double forward =
      milliseconds([&] { model.logits(theta.span(), batch, {.dropout = &dropout}, logits); });
  const double both = milliseconds([&] {
    model.loss_gradient(theta.span(), batch, {.dropout = &dropout, .keep = 0.9f}, momentum.span());
  });
  std::vector<double> steps;
  for (int i = 0; i < 5; ++i) steps.push_back(client.visit().steps.cpu / double(client.steps()));
  const double step = 1e3 * median(steps);
  fmt::print("{:<14}{:>12.3f}{:>10.3f}{:>10.3f}{:>12.3f}{:>12.3f}\n", task.name, step, gather,
             forward, both - forward, step - gather - both);
  std::fflush(stdout);
}

// The same of a sparse chain.
void print_sparse_parts(const Case& task) {
  const Client client(task);
  const SparseParts parts = time_sparse_parts(client.data(), task.features, client.batches());
  fmt::print("{:<14}{:>12.3f}{:>12.3f}{:>12.3f}{:>12.3f}{:>12.3f}\n", task.name, parts.plan,
             parts.fetch, parts.forward, parts.loss, parts.backward);
  std::fflush(stdout);
}

// Steps per second of wall time and of CPU time.
struct Rate {
  double wall = 0;
  double cpu = 0;
};

Rate steps_for(const Case& task, double seconds) {
  Client client(task);
  client.visit();
  double steps = 0;
  const Seconds start = now();
  while (now().wall - start.wall < seconds) {
    client.visit();
    steps += double(client.steps());
  }
  const Seconds end = now();
  return {steps / (end.wall - start.wall), steps / (end.cpu - start.cpu)};
}

Rate sum(const std::array<Rate, 2>& rates) {
  return {rates[0].wall + rates[1].wall, rates[0].cpu + rates[1].cpu};
}

Rate two_threads(const Case& task, double seconds) {
  std::array<Rate, 2> rates;
  std::array<std::thread, 2> threads;
  for (std::size_t i = 0; i < 2; ++i) {
    threads[i] = std::thread([&, i] { rates[i] = steps_for(task, seconds); });
  }
  for (std::thread& thread : threads) thread.join();
  return sum(rates);
}

Rate two_processes(const Case& task, double seconds) {
  std::array<int, 2> channel{};
  if (pipe(channel.data()) != 0) return {};
  std::array<pid_t, 2> children{};
  for (pid_t& child : children) {
    child = fork();
    if (child == 0) {
      const Rate rate = steps_for(task, seconds);
      const bool told = write(channel[1], &rate, sizeof rate) == ssize_t(sizeof rate);
      _exit(told ? 0 : 1);
    }
  }
  std::array<Rate, 2> rates;
  for (std::size_t i = 0; i < 2; ++i) {
    waitpid(children[i], nullptr, 0);
    if (read(channel[0], &rates[i], sizeof(Rate)) != ssize_t(sizeof(Rate))) rates[i] = {};
  }
  close(channel[0]);
  close(channel[1]);
  return sum(rates);
}

void print_threads(const Case& task) {
  std::vector<double> wall, cpu;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const Rate processes = two_processes(task, 1.0);
    const Rate threads = two_threads(task, 1.0);
    wall.push_back(threads.wall / processes.wall);
    cpu.push_back(threads.cpu / processes.cpu);
  }
  fmt::print("{:<14}{:>10.3f}{:>10.3f}\n", task.name, median(cpu), median(wall));
  std::fflush(stdout);
}

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  using namespace fedep;
  // Libtorch may have a copy of BLAS of its own: both are told the same kernel and one thread.
  if (std::getenv("OPENBLAS_CORETYPE") == nullptr) {
    setenv("OPENBLAS_CORETYPE", choose_blas_kernel().c_str(), 1);
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  prepare_process();  // as the program does
  const auto asked = [&](const std::string& name) {
    return argc == 1 || std::find(argv + 1, argv + argc, name) != argv + argc;
  };
  const std::vector<Case> cases = all_cases();
  fmt::print("BLAS kernels {}; milliseconds per step, medians of interleaved repeats\n\n",
             blas_kernel());
  if (asked("threads")) {  // first: children are forked while there is one thread
    fmt::print("{:<14}{:>10}{:>10}   two threads / two processes, steps per second; goal 0.95\n",
               "", "cpu", "wall");
    for (const Case& task : cases) print_threads(task);
    fmt::print("\n");
  }
  fmt::print(
      "eager: prior added by hand, in place | in the loss, with libtorch's SGD; ratios to both, "
      "and\n"
      "of the first to our step with all of its visit (chain, moments of 5 or 10 epochs, mean)\n"
      "{:<14}{:>6}{:>10}{:>12}{:>11}{:>11}{:>9}{:>9}{:>9}{:>6}\n",
      "", "clock", "our step", "with visit", "eager", "optimizer", "ratio", "ratio", "visit",
      "goal");
  for (const Case& task : cases) {
    if (asked(task.name)) print_ratio(task);
  }
  if (!asked("parts")) return 0;
  fmt::print("\n{:<14}{:>12}{:>10}{:>10}{:>12}{:>12}   CPU ms\n", "", "our step", "batch",
             "forward", "backward", "update");
  for (const Case& task : cases) {
    if (task.words == 0) print_parts(task);
  }
  fmt::print("{:<14}{:>12}{:>12}{:>12}{:>12}{:>12}\n", "", "batch, plan", "fetch rows", "forward",
             "loss", "backward");
  for (const Case& task : cases) {
    if (task.words > 0) print_sparse_parts(task);
  }
  const Preparation preparation;
  fmt::print(
      "\na batch of 20 images, CPU ms: crop, flip and standardise {:.3f}, PCA to 100 {:.3f}\n",
      milliseconds([&] { preparation.augment(); }), milliseconds([&] { preparation.project(); }));
}
