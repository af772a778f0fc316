#include "fedep/data/table/word_list.h"

#include <functional>
#include <utility>

namespace fedep {
namespace {

std::uint32_t hash_of(std::string_view word) {
  return std::uint32_t(std::hash<std::string_view>()(word));
}

}  // namespace

std::uint32_t WordList::find(std::string_view word) const {
  return slots_[slot_of(word, hash_of(word))].number;
}

std::uint32_t WordList::add(std::string_view word) {
  const std::uint32_t hash = hash_of(word);
  const std::size_t slot = slot_of(word, hash);
  if (slots_[slot].number != kNone) return slots_[slot].number;
  const auto number = std::uint32_t(words_.size());
  slots_[slot] = {hash, number};
  words_.emplace_back(word);
  if (2 * words_.size() > slots_.size()) make_room();
  return number;
}

std::vector<std::string> WordList::take() {
  std::vector<std::string> out = std::move(words_);
  *this = {};
  return out;
}

// The word's own, or the free one that it would take.
std::size_t WordList::slot_of(std::string_view word, std::uint32_t hash) const {
  const std::size_t last = slots_.size() - 1;
  for (std::size_t i = hash & last;; i = (i + 1) & last) {
    const Slot& slot = slots_[i];
    if (slot.number == kNone || (slot.hash == hash && words_[slot.number] == word)) return i;
  }
}

void WordList::make_room() {
  const std::vector<Slot> before = std::exchange(slots_, std::vector<Slot>(2 * slots_.size()));
  const std::size_t last = slots_.size() - 1;
  for (const Slot& slot : before) {
    if (slot.number == kNone) continue;
    std::size_t i = slot.hash & last;
    while (slots_[i].number != kNone) i = (i + 1) & last;
    slots_[i] = slot;
  }
}

}  // namespace fedep
