// Training examples that are nobody's to train on, as the test set of a data set without training
// clients' examples of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "fedep/data/dataset.h"

namespace fedep {

class HeldRows {
 public:
  // Of every client, by their numbers there. `data` must outlive this.
  HeldRows(const Dataset& data, std::vector<std::vector<std::uint32_t>> rows);

  std::size_t size() const { return begins_.back(); }
  // As evaluation sees them.
  void batch(std::size_t begin, std::size_t end, Batch& out) const;
  const std::vector<std::string>& clients() const { return clients_; }
  std::size_t client(std::size_t example) const;

 private:
  const Dataset& data_;
  std::vector<std::vector<std::uint32_t>> rows_;
  std::vector<std::string> clients_;
  std::vector<std::size_t> begins_{0};  // where each client's begin
};

}  // namespace fedep
