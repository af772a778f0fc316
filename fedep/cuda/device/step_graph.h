// Work for the GPU recorded once and launched many times, without the cost of launching each
// kernel.
//
//   const StepGraph step([&] { batches.next(); model.train_step(batches.batch(), chain, loss); });
//   for (int i = 0; i < steps; ++i) step.launch();
//
// What is recorded must be enqueued on device_stream(), must not allocate, and keeps its pointers.
#pragma once

#include <functional>

struct CUgraphExec_st;

namespace fedep {

class StepGraph {
 public:
  // `enqueue` is recorded `times` times, one after another; nothing of it runs yet.
  explicit StepGraph(const std::function<void()>& enqueue, int times = 1);
  ~StepGraph();
  StepGraph(const StepGraph&) = delete;
  StepGraph& operator=(const StepGraph&) = delete;

  void launch() const;

 private:
  CUgraphExec_st* graph_ = nullptr;
};

}  // namespace fedep
