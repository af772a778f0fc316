#include "fedep/cuda/device/side_stream.h"

#include <cuda_runtime_api.h>

#include "fedep/cuda/device/launch.h"

namespace fedep {
namespace {

using gpu::check_call;

// `later` goes on after what `earlier` was given so far.
void order(cudaStream_t earlier, cudaEvent_t event, cudaStream_t later) {
  check_call(cudaEventRecord(event, earlier), "cudaEventRecord");
  check_call(cudaStreamWaitEvent(later, event, 0), "cudaStreamWaitEvent");
}

}  // namespace

SideStream::SideStream() {
  check_call(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
  check_call(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "cudaEventCreate");
}

SideStream::~SideStream() {
  if (stream_ != nullptr) cudaStreamSynchronize(stream_);
  if (event_ != nullptr) cudaEventDestroy(event_);
  if (stream_ != nullptr) cudaStreamDestroy(stream_);
}

void SideStream::follow_main() { order(device_stream(), event_, stream_); }
void SideStream::follow(SideStream& other) { order(other.stream_, other.event_, stream_); }
void SideStream::main_follows() { order(stream_, event_, device_stream()); }

void SideStream::copy(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return;
  check_call(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_), "cudaMemcpyAsync");
}

void SideStream::wait() { check_call(cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

}  // namespace fedep
