#include "fedep/cuda/device/coordinates.h"

#include <algorithm>

namespace fedep {
namespace {

DeviceArray<gpu::Chunk> uploaded(const std::vector<Range>& ranges) {
  const std::vector<gpu::Chunk> chunks = chunks_of(ranges);
  return DeviceArray<gpu::Chunk>(chunks);
}

}  // namespace

Coordinates::Coordinates(const Model& model) : size_(model.size()) {
  const std::vector<Range> live = model.live();
  for (const Range& range : live) live_size_ += range.end - range.begin;
  live_ = uploaded(live);
  dead_ = uploaded(complement(live, size_));
  all_ = uploaded({{0, size_}});
  live_quads_ = uploaded(quads_of(live));
}

std::vector<gpu::Chunk> chunks_of(const std::vector<Range>& ranges) {
  std::vector<gpu::Chunk> chunks;
  for (const Range& range : ranges) {
    for (std::size_t begin = range.begin; begin < range.end; begin += gpu::kChunk) {
      const std::size_t size = std::min<std::size_t>(gpu::kChunk, range.end - begin);
      chunks.push_back({std::uint32_t(begin), std::uint32_t(size)});
    }
  }
  return chunks;
}

std::vector<Range> quads_of(const std::vector<Range>& ranges) {
  std::vector<Range> quads;
  for (const Range& range : ranges) {
    const Range touched{range.begin / 4, (range.end + 3) / 4};
    if (!quads.empty() && touched.begin <= quads.back().end) {
      quads.back().end = std::max(quads.back().end, touched.end);
    } else {
      quads.push_back(touched);
    }
  }
  return quads;
}

}  // namespace fedep
