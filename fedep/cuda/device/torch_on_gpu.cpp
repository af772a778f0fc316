#include "fedep/cuda/device/torch_on_gpu.h"

#include <exception>

#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAGuard.h>
#include <cuda_runtime_api.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/torch.h>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/device/launch.h"
#include "fedep/cuda/network/gradient_kernels.h"
#include "fedep/random/philox.h"

namespace fedep {
namespace {

// The library never prints: torch warns of operations that have no deterministic form.
class Silence final : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

bool stream_captures() {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  gpu::check_call(cudaStreamIsCapturing(device_stream(), &status), "cudaStreamIsCapturing");
  return status != cudaStreamCaptureStatusNone;
}

void choose_algorithms(bool tf32) {
  at::Context& context = at::globalContext();
  context.setAllowTF32CuBLAS(tf32);
  context.setAllowTF32CuDNN(tf32);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicCuDNN(true);
  context.setDeterministicAlgorithms(true, true);  // where torch has them
  context.setDeterministicFillUninitializedMemory(false);
}

}  // namespace

// Captured work finds its seed and offset in device memory, where `state` points.
struct TorchOnGpu::Parts {
  explicit Parts(bool with_tf32)
      : device(c10::DeviceType::CUDA, c10::cuda::current_device()), tf32(with_tf32), numbers(2) {
    at::globalContext().lazyInitDevice(c10::DeviceType::CUDA);
    numbers.zero();
    state = c10::make_intrusive<at::CUDAGeneratorState>();
    state->seed_extragraph_ = view(numbers.data());
    state->offset_extragraph_ = view(numbers.data() + 1);
    generator = at::make_generator<at::CUDAGeneratorImpl>(device.index(), state);
    pool = at::cuda::graph_pool_handle();
  }

  at::Tensor view(std::int64_t* number) const {
    return at::for_blob(number, {1})
        .options(at::TensorOptions().dtype(at::kLong).device(device))
        .target_device(device)
        .make_tensor();
  }

  at::Device device;
  bool tf32;
  DeviceArray<std::int64_t> numbers;  // seed, offset
  c10::intrusive_ptr<at::CUDAGeneratorState> state;
  at::Generator generator;
  c10::MempoolId_t pool;
  int pool_uses = 0;
  Silence silence;
};

TorchOnGpu::TorchOnGpu(bool tf32) : parts_(std::make_unique<Parts>(tf32)) {}

TorchOnGpu::~TorchOnGpu() {
  try {
    for (int i = 0; i < parts_->pool_uses; ++i) {
      c10::cuda::CUDACachingAllocator::releasePool(device(), parts_->pool);
    }
  } catch (const std::exception&) {  // the process ends, and its memory with it
  }
}

signed char TorchOnGpu::device() const { return parts_->device.index(); }
bool TorchOnGpu::drew() const { return parts_->state->philox_offset_per_thread_ > 0; }

void TorchOnGpu::seed(const StreamAddress* at, std::uint32_t steps) {
  at::CUDAGeneratorState& state = *parts_->state;
  std::int64_t* const numbers = parts_->numbers.data();
  if (stream_captures()) {
    state.offset_intragraph_ = 0;
    gpu::seed_generator(at, steps, numbers, numbers + 1, device_stream());
    return;
  }
  StreamAddress address;
  copy_to_host(&address, at, sizeof(address));
  const PhiloxCounter words =
      philox({0, 0, address.step + steps, address.round}, {address.key0, address.key1});
  state.seed_ = words[0] | std::uint64_t(words[1]) << 32;
  state.philox_offset_per_thread_ = 0;
}

struct TorchOnGpu::Entered::Guards {
  explicit Guards(Parts& parts)
      : stream(c10::cuda::getStreamFromExternal(device_stream(), parts.device.index())),
        optimizer(false),  // it would fuse operations after some passes, with kernels made anew
        warnings(&parts.silence),
        generator(at::cuda::detail::getDefaultCUDAGenerator(parts.device.index())),
        before(generator.graphsafe_get_state()) {}

  c10::cuda::CUDAStreamGuard stream;
  torch::jit::GraphOptimizerEnabledGuard optimizer;
  c10::WarningUtils::WarningHandlerGuard warnings;
  at::Generator generator, before;
  bool captures = false;
};

TorchOnGpu::Entered::Entered(TorchOnGpu& torch)
    : torch_(torch), guards_(std::make_unique<Guards>(*torch.parts_)) {
  Parts& parts = *torch.parts_;
  choose_algorithms(parts.tf32);
  if (stream_captures()) {
    const cudaStream_t ours = device_stream();
    c10::cuda::CUDACachingAllocator::beginAllocateToPool(
        parts.device.index(), parts.pool, [ours](cudaStream_t stream) { return stream == ours; });
    ++parts.pool_uses;
    parts.state->capturing_ = guards_->captures = true;
  }
  guards_->generator.graphsafe_set_state(parts.generator);
}

TorchOnGpu::Entered::~Entered() {
  Parts& parts = *torch_.parts_;
  guards_->generator.graphsafe_set_state(guards_->before);
  if (guards_->captures) {
    parts.state->capturing_ = false;
    c10::cuda::CUDACachingAllocator::endAllocateToPool(parts.device.index(), parts.pool);
  }
}

}  // namespace fedep
