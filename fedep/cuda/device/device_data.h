// A data set's training examples in GPU memory, and the minibatches of a cohort made of them there.
//
//   const std::unique_ptr<DeviceData> data = upload_training_data(dataset, recipe.data.augment);
//   CohortBatches batches(*data, clients, rows);
//   batches.load(order);                       // once a round
//   batches.next(); use(batches.batch());      // every step; may be captured into a graph
//
// Images that are kept as bytes stay bytes and are cropped by the GPU; other dense examples are
// uploaded as floats once, or, where there is no room for them or they are augmented by the data
// set itself, made on the host for each schedule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "fedep/cuda/device/batch_kernels.h"
#include "fedep/cuda/device/device.h"
#include "fedep/cuda/network/cohort_model.h"
#include "fedep/data/dataset.h"

namespace fedep {

StreamAddress stream_address(const Address& address);

// Which examples each client takes in each step of a schedule.
struct CohortOrder {
  std::size_t clients = 0, rows = 0;
  std::vector<std::uint32_t> examples;   // [steps, clients, rows], numbers among the client's own
  std::vector<std::int32_t> counts;      // [steps, clients]; 0: the client rests
  std::vector<std::uint32_t> own_steps;  // [steps, clients], the step in the client's addresses
  std::vector<std::size_t> client;       // [clients], index in the data set
  std::vector<Address> augment;          // [clients], of crops; the step is own_steps'
  std::vector<Address> dropout;          // [clients]

  std::size_t steps() const { return clients == 0 ? 0 : counts.size() / clients; }
};

class DeviceData {
 public:
  virtual ~DeviceData() = default;

  // Whatever a schedule needs before its first step. Gives back how often the memory has moved that
  // a captured make_batch() refers to.
  virtual std::size_t prepare(const CohortOrder& order) = 0;
  // Features and labels of the step that was begun. `first` as first_example() gives it.
  virtual void make_batch(const gpu::StepTables& tables, const std::uint32_t* first,
                          float* features, std::int32_t* labels) = 0;
  // Where a client's examples begin among all.
  virtual std::uint32_t first_example(std::size_t client) const = 0;
};

// Throws InputError for data that the GPU has no kernels for: sparse features, targets other than
// labels. `augment`: batches of the schedule are crops drawn from its addresses.
std::unique_ptr<DeviceData> upload_training_data(const Dataset& data, bool augment);

class CohortBatches {
 public:
  CohortBatches(DeviceData& data, std::size_t clients, std::size_t rows, std::size_t features);

  // `order` has as many clients and rows as were asked for. True if a graph captured before must be
  // captured anew.
  bool load(const CohortOrder& order);
  void go_to(std::size_t step);  // of the schedule; load() goes to the first
  void next();
  CohortBatch batch() const;
  std::int32_t* labels() { return labels_.data(); }
  const StreamAddress* dropout() const { return dropout_.data(); }
  const StreamAddress* augment() const { return augment_.data(); }
  const std::int32_t* step() const { return state_.data() + 1; }  // the one that was begun

 private:
  gpu::StepTables tables();

  DeviceData& data_;
  std::size_t clients_, rows_, data_moves_ = 0;
  DeviceArray<float> features_;
  DeviceArray<std::int32_t> labels_, counts_table_, state_, count_;
  DeviceArray<std::uint32_t> examples_, own_steps_, first_;
  DeviceArray<StreamAddress> augment_, dropout_;
};

}  // namespace fedep
