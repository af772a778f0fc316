#include "fedep/cuda/device/step_graph.h"

#include <cuda_runtime_api.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/launch.h"

namespace fedep {
namespace {

using gpu::check_call;

}  // namespace

StepGraph::StepGraph(const std::function<void()>& enqueue, int times) {
  const cudaStream_t stream = device_stream();
  // Relaxed: kernels that run for the first time may have to be loaded meanwhile.
  check_call(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed),
             "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    for (int i = 0; i < times; ++i) enqueue();
  } catch (...) {
    cudaStreamEndCapture(stream, &graph);
    if (graph != nullptr) cudaGraphDestroy(graph);
    cudaGetLastError();  // the next call starts clean
    throw;
  }
  check_call(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  const cudaError_t made = cudaGraphInstantiate(&graph_, graph, 0);
  cudaGraphDestroy(graph);
  check_call(made, "cudaGraphInstantiate");
}

StepGraph::~StepGraph() {
  // A graph may be destroyed while it runs; the runtime waits for it.
  if (graph_ != nullptr) cudaGraphExecDestroy(graph_);
}

void StepGraph::launch() const {
  check_call(cudaGraphLaunch(graph_, device_stream()), "cudaGraphLaunch");
}

}  // namespace fedep
