// Questions as a model of tags sees them, packed: words and tags as places in a vocabulary, two
// bytes each. All of StackOverflow (a hundred million rows) so takes gigabytes, not tens of them.
//
//   Vocabulary vocabulary = counter.vocabulary(kStackoverflowWords, kStackoverflowTags);
//   auto rows = std::make_unique<QuestionRows>(vocabulary);
//   rows->add(question);   // words outside the vocabulary are dropped, likewise tags
//
// A batch's features are the share of each word among the question's words in the vocabulary:
// counts divided by their sum; nothing at all if there is none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "fedep/data/memory_dataset.h"

namespace fedep {

inline constexpr std::size_t kStackoverflowWords = 10000;
inline constexpr std::size_t kStackoverflowTags = 500;

struct Question {
  std::vector<std::string> words;
  std::vector<std::string> tags;
};

struct Vocabulary {
  std::vector<std::string> words;
  std::vector<std::string> tags;

  bool operator==(const Vocabulary&) const = default;
};

// Counts what training clients use: a word by the number of users who do, a tag by the number of
// questions that have it.
class VocabularyCounter {
 public:
  void add_user(std::span<const Question> questions);
  // The most used, equals in alphabetical order; fewer if there are not so many.
  Vocabulary vocabulary(std::size_t words, std::size_t tags) const;

 private:
  std::unordered_map<std::string, std::size_t> word_users_;
  std::unordered_map<std::string, std::size_t> tag_questions_;
};

class QuestionRows final : public RowSource {
 public:
  // Throws InputError for more than 65,536 words or tags, or one that is there twice.
  explicit QuestionRows(const Vocabulary& vocabulary);

  void add(const Question& question);

  std::size_t rows() const override { return word_ends_.size() - 1; }
  void gather(std::span<const std::size_t> rows, Batch& out) const override;

 private:
  using Places = std::unordered_map<std::string, std::uint16_t>;
  static Places places(const std::string& kind, const std::vector<std::string>& names);

  Places word_places_, tag_places_;
  std::vector<std::uint64_t> word_ends_{0}, tag_ends_{0};
  std::vector<std::uint16_t> words_, tags_;  // of a row ascending; a word as often as it is there
};

}  // namespace fedep
