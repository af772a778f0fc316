// The rows of a sum of weight_product.cuh: pairs of an example and an output position, in the order
// in which tiles take them, and a block's part of them.
#pragma once

#include "fedep/cuda/network/tap_positions.cuh"
#include "fedep/cuda/network/weight_step.cuh"

namespace fedep::gpu {

// Squares are taken of whole examples: each has `groups` groups of `width` positions, the last one
// filled up with zeros: eight, as many as a product contracts, or four where that is enough. With
// one position an example's square is a product of squares, and no groups are needed.
template <Sum kSum>
struct SumRows {
  const MinibatchRows& examples;
  int listed;  // positions that the block's taps meet data at
  int width, groups;
  int first, last;  // of the block's part

  __device__ SumRows(const MinibatchRows& all, int positions, int tile_depth, int splits, int split)
      : examples(all), listed(positions) {
    width = listed > 4 ? 8 : listed > 1 ? 4 : 1;
    groups = (listed + width - 1) / width;
    const int count = examples.count;
    const int depth = kSum == Sum::squares ? count * groups * width : count * listed;
    first = 0;
    last = depth;
    if (splits > 1) {
      if (kSum == Sum::squares) {  // a part ends where an example ends
        const int share = (count + splits - 1) / splits;
        first = min(split * share, count) * groups * width;
        last = min((split + 1) * share, count) * groups * width;
      } else {
        const int tiles = (depth + tile_depth - 1) / tile_depth;
        const int share = (tiles + splits - 1) / splits * tile_depth;
        first = min(split * share, depth);
        last = min(first + share, depth);
      }
    }
    by_count_ = 1.0f / float(count);
    by_groups_ = 1.0f / float(max(groups, 1));
    width_bits_ = __ffs(width) - 1;
  }

  // Example and place in the list of positions of row r; a negative image: nothing. Quotients by
  // floats are exact here: below 2^22.
  __device__ void find(int r, int& image, int& index) const {
    if (kSum == Sum::squares) {
      const int group = r >> width_bits_;
      image = __float2int_rz((float(group) + 0.5f) * by_groups_);
      index = (group - image * groups) * width + (r & (width - 1));
      if (index >= listed) {
        image = -1;
        index = 0;
      }
    } else {
      index = __float2int_rz((float(r) + 0.5f) * by_count_);
      image = r - index * examples.count;
    }
    if (kSum != Sum::gradients && image >= 0) image = examples.at(image);
    if (r >= last) {
      image = -1;
      index = 0;
    }
  }

 private:
  float by_count_, by_groups_;
  int width_bits_;
};

}  // namespace fedep::gpu
