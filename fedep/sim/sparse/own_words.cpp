#include "fedep/sim/sparse/own_words.h"

#include <fmt/format.h>

#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr std::uint32_t kNobodys = ~std::uint32_t(0);

}  // namespace

OwnWords::OwnWords(const Dataset& data, const Reach& reach, std::size_t width)
    : data_(data), places_(reach.whole_size() / width - 1, kNobodys) {
  for (const Range& range : reach.ranges()) {
    for (std::size_t row = range.begin / width; row < range.end / width; ++row) {
      if (row < places_.size()) places_[row] = std::uint32_t(words_++);  // the last is the bias
    }
  }
}

void OwnWords::train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                           const Address* augmentation, Batch& out) const {
  data_.train_batch(client, examples, augmentation, out);
  for (std::uint32_t& column : out.sparse.columns) {
    const std::uint32_t place = column < places_.size() ? places_[column] : kNobodys;
    if (place == kNobodys) {
      fail("OwnWords", "a feature", "one of the client's own", fmt::format("{}", column));
    }
    column = place;
  }
}

void OwnWords::test_batch(std::size_t, std::size_t, Batch& out) const { out = Batch{}; }

}  // namespace fedep
