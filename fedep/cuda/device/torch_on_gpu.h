// What torch has to be told whenever it works for us on the GPU: our stream; where the memory of
// captured work comes from, which nobody else may be given; where random numbers begin; how exact
// products are.
//
//   TorchOnGpu torch(true);
//   const StepGraph step([&] {
//     const TorchOnGpu::Entered entered(torch);
//     torch.seed(addresses.data(), 0);
//     …                                        // torch's operations; no waiting, no reading back
//   });
//
// Before work is captured the same work must have run once: torch makes handles, workspaces and
// threads when it first needs them. `torch` must outlive the graphs.
#pragma once

#include <cstdint>
#include <memory>

#include "fedep/cuda/device/stream_address.h"

namespace fedep {

class TorchOnGpu {
 public:
  explicit TorchOnGpu(bool tf32);
  ~TorchOnGpu();
  TorchOnGpu(const TorchOnGpu&) = delete;
  TorchOnGpu& operator=(const TorchOnGpu&) = delete;

  // Torch works for us while this lives.
  class Entered {
   public:
    explicit Entered(TorchOnGpu& torch);
    ~Entered();
    Entered(const Entered&) = delete;
    Entered& operator=(const Entered&) = delete;

   private:
    struct Guards;
    TorchOnGpu& torch_;
    std::unique_ptr<Guards> guards_;
  };

  // The seed of what follows is the first 64 bits of the stream `steps` steps after *at. Captured
  // work reads it when it is launched; otherwise this waits for the GPU.
  void seed(const StreamAddress* at, std::uint32_t steps);
  // Whether work since the last seed() took random numbers; not for captured work.
  bool drew() const;

  signed char device() const;  // torch's index of it

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace fedep
