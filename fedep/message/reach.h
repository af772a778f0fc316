// Some coordinates of a vector, as a vector of their own: what a client's data can move of a model with
// many weights.
//
//   const Reach reach({{0, 500}, {4000, 4500}}, 5000500);
//   const Message small = reach.gather(q);              // of 1,000 coordinates
//   const SparseMessage kept = reach.scatter(small);    // of all, zero elsewhere
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/message/layout.h"
#include "fedep/message/sparse_message.h"

namespace fedep {

class Reach {
 public:
  Reach() = default;  // of nothing
  // Ranges ascend, are disjoint and not empty. Throws InputError for others.
  Reach(std::vector<Range> ranges, std::size_t whole_size);

  std::size_t size() const { return begins_.empty() ? 0 : begins_.back() + length(ranges_.back()); }
  std::size_t whole_size() const { return whole_size_; }
  bool is_part() const { return size() > 0 && size() < whole_size_; }
  const std::vector<Range>& ranges() const { return ranges_; }

  // Where coordinate `i` is in the whole vector.
  std::size_t place(std::size_t i) const;

  HostVector<float> gather(const HostVector<float>& whole) const;
  // Not of full precision matrices.
  Message gather(const Message& whole) const;
  // What a sparse message says within the reach, and whether it says nothing beyond.
  Message gather(const SparseMessage& whole) const;
  bool has_all_of(const SparseMessage& whole) const;

  // The bits of without_zeros() of the whole message.
  SparseMessage scatter(const Message& part) const;

 private:
  static std::size_t length(const Range& range) { return range.end - range.begin; }
  HostVector<float> gather(const SparseArray& whole) const;

  std::vector<Range> ranges_;
  std::vector<std::size_t> begins_;  // of ranges, in the small vector
  std::size_t whole_size_ = 0;
};

}  // namespace fedep
