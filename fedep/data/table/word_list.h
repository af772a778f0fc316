// Words by number, each kept once, in the order in which they come.
//
//   WordList words;
//   words.add("north");     // 0
//   words.add("south");     // 1
//   words.find("north");    // 0 again
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace fedep {

class WordList {
 public:
  static constexpr std::uint32_t kNone = std::numeric_limits<std::uint32_t>::max();

  // Its number; kNone if it is not there.
  std::uint32_t find(std::string_view word) const;
  std::uint32_t add(std::string_view word);

  const std::string& operator[](std::uint32_t number) const { return words_[number]; }
  std::size_t size() const { return words_.size(); }
  // All of them; the list is empty afterwards.
  std::vector<std::string> take();

 private:
  // Where a word was looked for: half of them are free, and who finds another word looks in the next.
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t number = kNone;
  };

  std::size_t slot_of(std::string_view word, std::uint32_t hash) const;
  void make_room();

  std::vector<std::string> words_;
  std::vector<Slot> slots_ = std::vector<Slot>(16);  // as many as a power of two
};

}  // namespace fedep
