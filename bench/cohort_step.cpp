// Times one SGD step of a cohort's clients on the GPU, captured in a CUDA graph, against the copy
// bandwidth of the same run; also a forward pass, and squared gradients of one minibatch a client.
//
//   fedep_bench_cohort [clients] [rows] [model] [room]
//
// model: also pfl, pfl-research's speed job. room: clients that the model is made for, of which those
// are a rank's share; their sums are cut as all of theirs.
#include <cstdio>
#include <cstdlib>
#include <string>

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/network/cohort_model.h"
#include "fedep/model/registry.h"
#include "fedep/random/stream.h"

namespace {

using namespace fedep;

// Milliseconds of one repetition.
template <class Work>
double time_on_device(int repeats, const Work& work) {
  cudaEvent_t begin, end;
  cudaEventCreate(&begin);
  cudaEventCreate(&end);
  for (int i = 0; i < 3; ++i) work();
  cudaEventRecord(begin, device_stream());
  for (int i = 0; i < repeats; ++i) work();
  cudaEventRecord(end, device_stream());
  cudaEventSynchronize(end);
  float milliseconds = 0;
  cudaEventElapsedTime(&milliseconds, begin, end);
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  return double(milliseconds) / repeats;
}

template <class Work>
double time_as_graph(int repeats, const Work& work) {
  work();
  wait_for_device();
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  cudaStreamBeginCapture(device_stream(), cudaStreamCaptureModeThreadLocal);
  work();
  cudaStreamEndCapture(device_stream(), &graph);
  if (cudaGraphInstantiate(&runnable, graph, 0) != cudaSuccess) {
    fmt::print(stderr, "graph: {}\n", cudaGetErrorString(cudaGetLastError()));
    std::exit(1);
  }
  const double milliseconds =
      time_on_device(repeats, [&] { cudaGraphLaunch(runnable, device_stream()); });
  cudaGraphExecDestroy(runnable);
  cudaGraphDestroy(graph);
  return milliseconds;
}

}  // namespace

int main(int argc, char** argv) {
  if (const std::string why = device_problem(); !why.empty()) {
    fmt::print(stderr, "{}\n", why);
    return 1;
  }
  const std::size_t clients = argc > 1 ? std::size_t(std::atoi(argv[1])) : 20;
  const std::size_t rows = argc > 2 ? std::size_t(std::atoi(argv[2])) : 20;
  const std::string name = argc > 3 ? argv[3] : "resnet18";
  const std::size_t room = argc > 4 ? std::size_t(std::atoi(argv[4])) : clients;
  DatasetInfo info;
  info.name = "random";
  info.features = {24, 24, 3};
  info.outputs = 100;
  if (name == "cnn") {
    info.features = {28, 28, 1};
    info.outputs = 62;
  } else if (name == "pfl") {
    info.features = {32, 32, 3};
    info.outputs = 10;
  }
  const ModelSettings settings{.name = name == "pfl" ? "cnn" : name,
                               .norm = NormKind::per_position,
                               .initial_scale = 0.01,
                               .path = {}};
  const auto host = make_model(settings, info);
  const auto model = make_cohort_model(settings, info, {room, rows, ProductPrecision::tf32});
  const std::size_t stride = (model->size() + 3) / 4 * 4;

  std::vector<float> one(stride), images(clients * rows * info.feature_count());
  host->initialise(1, std::span(one).first(model->size()));
  fill_normal({.seed = 1}, images);
  DeviceArray<float> theta(clients * stride), momentum(clients * stride), eta(clients * stride);
  for (std::size_t c = 0; c < clients; ++c) {
    copy_to_device(theta.data() + c * stride, one.data(), stride * sizeof(float));
  }
  momentum.zero();
  eta.zero();
  DeviceArray<float> sum(clients * stride);
  sum.zero();
  const DeviceArray<float> features{std::span<const float>(images)};
  const std::vector<std::int32_t> label_values(clients * rows, 1),
      count_values(clients, std::int32_t(rows));
  const DeviceArray<std::int32_t> labels{std::span<const std::int32_t>(label_values)};
  const DeviceArray<std::int32_t> counts{std::span<const std::int32_t>(count_values)};
  const std::vector<float> precisions(clients, 5.0f), shares(clients, 0.01f);
  const DeviceArray<float> lambda{std::span<const float>(precisions)},
      per_example{std::span<const float>(shares)};
  DeviceArray<double> loss(clients);
  loss.zero();
  DeviceArray<float> logits(clients * rows * info.outputs);
  const CohortBatch batch{clients, rows, features.data(), labels.data(), counts.data(), nullptr};
  const CohortChain chain{theta.data(), momentum.data(),    stride, eta.data(), lambda.data(),
                          false,        per_example.data(), 0.001f, 0.9f,       false};

  const double step = time_as_graph(50, [&] { model->train_step(batch, chain, loss.data()); });
  const double forward =
      time_as_graph(50, [&] { model->logits(batch, theta.data(), stride, logits.data()); });
  const double squares = time_as_graph(20, [&] {
    model->add_squared_gradients(batch, theta.data(), stride, nullptr, nullptr,
                                 {.sum = sum.data()});
  });
  DeviceArray<float> from(std::size_t(1) << 28), to(std::size_t(1) << 28);
  const double copy = time_on_device(
      20, [&] { copy_on_device(to.data(), from.data(), from.size() * sizeof(float)); });
  std::size_t live = 0;
  for (const Range& range : host->live()) live += range.end - range.begin;
  const double bandwidth = 2.0 * double(from.size() * sizeof(float)) / copy / 1e9;  // TB/s
  const double floor = 7.0 * double(live * sizeof(float) * clients) / bandwidth / 1e9;
  fmt::print(
      "{} {} clients of {} x {}: step {:.4f} ms = {:.4f} ms a client-step; forward {:.4f} ms, "
      "squares "
      "{:.4f} ms; "
      "copy {:.2f} TB/s, 7 passes over live weights {:.4f} ms ({:.0f} %)\n",
      name, clients, room, rows, step, step / double(clients), forward, squares, bandwidth, floor,
      100 * floor / step);
  return 0;
}
