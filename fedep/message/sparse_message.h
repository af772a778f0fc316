// A message without its zeros: what is kept of one that speaks of few coordinates. The way there and
// back is exact in every bit, whatever the numbers are.
//
//   const SparseMessage kept = without_zeros(factor);
//   const Message factor = expanded(kept);
//
// As sections of a record an array with zeros left out is "<prefix>.eta.size" (i64), "<prefix>.eta.runs"
// (i64) and "<prefix>.eta.values" (f32), and "<prefix>.lambda.…" likewise; an array of which nothing is
// left out is "<prefix>.eta" or "<prefix>.lambda", as message_bytes.h has it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "fedep/message/gaussian.h"
#include "fedep/message/layout.h"
#include "fedep/message/record.h"

namespace fedep {

// Zeros that stand so many together are left out; fewer would cost more to say than to keep.
inline constexpr std::size_t kZerosLeftOut = 8;

struct SparseArray {
  std::int64_t size = 0;
  std::vector<std::int64_t> runs;  // for each run the zeros before it, and its numbers
  std::vector<float> values;       // of all runs, one after another

  bool is_whole() const { return std::int64_t(values.size()) == size; }
  bool operator==(const SparseArray&) const = default;
};

struct SparseMessage {
  Family family = Family::isotropic;
  SparseArray eta, lambda;

  std::size_t size() const { return std::size_t(eta.size); }
  // In memory and on disk, but for a few words.
  std::size_t bytes() const;
  bool operator==(const SparseMessage&) const = default;
};

SparseArray without_zeros(std::span<const float> numbers);
// Of an array of `size` that has these numbers in ranges, which ascend and are disjoint, and zeros
// elsewhere.
SparseArray without_zeros(std::span<const float> numbers, std::span<const Range> where,
                          std::size_t size);
SparseMessage without_zeros(const Message& message);
HostVector<float> expanded(const SparseArray& array);
Message expanded(const SparseMessage& message);

// visit(begin, numbers) for each run.
template <class Visit>
void for_each_run(const SparseArray& array, const Visit& visit) {
  std::size_t at = 0, read = 0;
  for (std::size_t run = 0; run + 1 < array.runs.size(); run += 2) {
    const auto count = std::size_t(array.runs[run + 1]);
    at += std::size_t(array.runs[run]);
    visit(at, std::span(array.values).subspan(read, count));
    at += count;
    read += count;
  }
}

// `message` must outlive the sections.
void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const SparseMessage& message);
void append_sections(std::vector<SectionView>& sections, std::string_view prefix,
                     const SparseMessage&& message) = delete;
// Leaves the record's sections empty. Throws InputError for sections that are missing, do not fit or
// are not what append_sections() makes of a message; what a size claims is not believed until
// expanded() is asked for it.
SparseMessage extract_sparse_message(Record& record, std::string_view prefix);

}  // namespace fedep
