// Minibatches of a whole cohort, made on the GPU. Which examples a step takes stands in tables in
// device memory, and so does the number of the step: a captured graph makes the next batch whenever
// it is launched. Plain C++17: nvcc reads this.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fedep/cuda/device/stream_address.h"

struct CUstream_st;

namespace fedep::gpu {

using Stream = CUstream_st*;

// What the steps of a schedule take, and where the current one is. All pointers are to device
// memory.
struct StepTables {
  int clients = 0, rows = 0;
  const std::uint32_t* examples = nullptr;   // [steps, clients, rows], numbers among a client's own
  const std::int32_t* counts = nullptr;      // [steps, clients]
  const std::uint32_t* own_steps = nullptr;  // [steps, clients]: the step in a client's addresses
  std::int32_t* next = nullptr;              // [1], from 0 on
  std::int32_t* step = nullptr;              // [1], the one that was begun
  std::int32_t* count = nullptr;             // [clients], its examples
  StreamAddress* augment = nullptr;          // [clients], of crops; begin_step sets their steps
  StreamAddress* dropout = nullptr;          // [clients]
};

// step = next++; fills count and the addresses' steps.
void begin_step(const StepTables& tables, Stream stream);

// Images as bytes, [images, side, side, channels] where they are cropped. Device memory.
struct ImageStore {
  const std::uint8_t* pixels = nullptr;
  const std::int32_t* labels = nullptr;       // [images]
  const std::uint32_t* images = nullptr;      // of all clients, one after another
  const std::uint32_t* numbers = nullptr;     // by which crops are drawn; null: a client's own
  int image_size = 0;                         // bytes
  int side = 0, crop_side = 0, channels = 0;  // crop_side 0: whole images, bytes over 255
  bool random_crops = false;                  // else the centre
  const float* panels = nullptr;  // [panels][crop][16] (data/image/pca.h); null: no projection
  const float* offset = nullptr;  // [components]
  int components = 0;
};

// features [clients, rows, image or crop or components] and labels [clients, rows] of the current
// step, with the bits of data/image/image_augment and data/image/pca. `first`[c]: where client c's begin in
// store.images. Rows beyond count[c] are left alone.
void image_batch(const StepTables& tables, const ImageStore& store, const std::uint32_t* first,
                 float* features, std::int32_t* labels, Stream stream);

// Examples as rows of floats. `first` null: rows lie in the order of the schedule, [steps, clients,
// rows].
struct RowStore {
  const float* rows = nullptr;
  const std::int32_t* labels = nullptr;
  int features = 0;
};
void row_batch(const StepTables& tables, const RowStore& store, const std::uint32_t* first,
               float* features, std::int32_t* labels, Stream stream);

}  // namespace fedep::gpu
