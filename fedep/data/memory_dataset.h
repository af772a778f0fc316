// A data set whose rows lie in memory, client after client.
//
//   return memory_dataset(info, {train_clients, batch_rows(train)}, {test_clients, batch_rows(test)});
//
// Rows come from a RowSource, so that large sets may keep them packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"

namespace fedep {

class RowSource {
 public:
  virtual ~RowSource() = default;
  virtual std::size_t rows() const = 0;
  // Fills `out` with these rows, in this order.
  virtual void gather(std::span<const std::size_t> rows, Batch& out) const = 0;
};

// Rows kept as a batch keeps them. Throws InputError if its parts have different lengths.
std::unique_ptr<const RowSource> batch_rows(Batch rows);

// Who owns which rows: client k has [offsets[k], offsets[k+1]).
struct ClientRows {
  std::vector<std::string> ids = {};
  std::vector<std::size_t> offsets{0};

  void add(std::string id, std::size_t rows);
};

struct Part {
  ClientRows clients;
  std::unique_ptr<const RowSource> rows;
  std::vector<std::uint32_t> groups = {};  // by row, as Dataset::groups; empty: each on its own

  std::size_t size() const { return clients.offsets.back(); }
  // Rows [begin, end), and whose row this is: what a data set says of its test set.
  void batch(std::size_t begin, std::size_t end, Batch& out) const;
  std::size_t client_of(std::size_t row) const;
};

// Throws InputError if there is no client, a training client without rows, an id twice, or not as
// many rows (or numbers of groups) as the clients have together.
std::unique_ptr<Dataset> memory_dataset(DatasetInfo info, Part train, Part test);

}  // namespace fedep
