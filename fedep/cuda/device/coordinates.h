// A model's coordinates as kernels take them: those that data move, those that they never do
// (Model::live()), and all, cut into chunks.
#pragma once

#include <cstddef>
#include <vector>

#include "fedep/cuda/device/device.h"
#include "fedep/cuda/round/chain_kernels.h"
#include "fedep/model/model.h"

namespace fedep {

class Coordinates {
 public:
  explicit Coordinates(const Model& model);

  std::size_t size() const { return size_; }
  std::size_t stride() const {
    return (size_ + 31) / 32 * 32;
  }  // floats between rows: whole cache lines
  std::size_t live_size() const { return live_size_; }

  gpu::Chunks live() const { return view(live_); }
  gpu::Chunks dead() const { return view(dead_); }
  gpu::Chunks all() const { return view(all_); }
  // Groups of four coordinates that have a live one; chunks count groups.
  gpu::Chunks live_quads() const { return view(live_quads_); }

 private:
  static gpu::Chunks view(const DeviceArray<gpu::Chunk>& chunks) {
    return {chunks.data(), int(chunks.size())};
  }

  std::size_t size_, live_size_ = 0;
  DeviceArray<gpu::Chunk> live_, dead_, all_, live_quads_;
};

// Every range cut into chunks of at most gpu::kChunk.
std::vector<gpu::Chunk> chunks_of(const std::vector<Range>& ranges);

// The groups of four that the ranges touch, none twice.
std::vector<Range> quads_of(const std::vector<Range>& ranges);

}  // namespace fedep
