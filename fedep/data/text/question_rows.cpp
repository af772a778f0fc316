#include "fedep/data/text/question_rows.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "fedep/message/check.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

std::vector<std::string> most_used(const std::unordered_map<std::string, std::size_t>& counts,
                                   std::size_t size) {
  std::vector<std::pair<std::string_view, std::size_t>> order(counts.begin(), counts.end());
  const std::size_t kept = std::min(size, order.size());
  std::partial_sort(order.begin(), order.begin() + kept, order.end(),
                    [](const auto& a, const auto& b) {
                      return a.second != b.second ? a.second > b.second : a.first < b.first;
                    });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kept; ++i) names.emplace_back(order[i].first);
  return names;
}

}  // namespace

void VocabularyCounter::add_user(std::span<const Question> questions) {
  std::unordered_set<std::string_view> words;
  for (const Question& question : questions) {
    words.insert(question.words.begin(), question.words.end());
    const std::set<std::string> tags(question.tags.begin(), question.tags.end());
    for (const std::string& tag : tags) ++tag_questions_[tag];
  }
  for (const std::string_view word : words) ++word_users_[std::string(word)];
}

Vocabulary VocabularyCounter::vocabulary(std::size_t words, std::size_t tags) const {
  return {most_used(word_users_, words), most_used(tag_questions_, tags)};
}

QuestionRows::QuestionRows(const Vocabulary& vocabulary)
    : word_places_(places("word", vocabulary.words)), tag_places_(places("tag", vocabulary.tags)) {}

QuestionRows::Places QuestionRows::places(const std::string& kind,
                                          const std::vector<std::string>& names) {
  check_in("vocabulary", fmt::format("number of {}s", kind), double(names.size()), 1, 65536);
  Places out;
  for (const std::string& name : names) {
    if (!out.emplace(name, std::uint16_t(out.size())).second) {
      fail("vocabulary", kind + " " + shown(name), "there once", "there twice");
    }
  }
  return out;
}

void QuestionRows::add(const Question& question) {
  for (const std::string& word : question.words) {
    const auto found = word_places_.find(word);
    if (found != word_places_.end()) words_.push_back(found->second);
  }
  std::sort(words_.begin() + std::ptrdiff_t(word_ends_.back()), words_.end());
  word_ends_.push_back(words_.size());

  for (const std::string& tag : question.tags) {
    const auto found = tag_places_.find(tag);
    if (found != tag_places_.end()) tags_.push_back(found->second);
  }
  const auto begin = tags_.begin() + std::ptrdiff_t(tag_ends_.back());
  std::sort(begin, tags_.end());
  tags_.erase(std::unique(begin, tags_.end()), tags_.end());
  tag_ends_.push_back(tags_.size());
}

void QuestionRows::gather(std::span<const std::size_t> rows, Batch& out) const {
  out.size = rows.size();
  out.dense.clear();
  out.labels.clear();
  out.reals.clear();
  out.log_exposure.clear();
  for (SparseRows* part : {&out.sparse, &out.tags}) {
    part->offsets.assign(1, 0);
    part->columns.clear();
    part->values.clear();
  }
  for (const std::size_t row : rows) {
    const std::size_t end = word_ends_[row + 1];
    const auto total = float(end - word_ends_[row]);
    for (std::size_t i = word_ends_[row]; i < end;) {
      std::size_t next = i + 1;
      while (next < end && words_[next] == words_[i]) ++next;
      out.sparse.columns.push_back(words_[i]);
      out.sparse.values.push_back(float(next - i) / total);
      i = next;
    }
    out.sparse.offsets.push_back(std::uint32_t(out.sparse.columns.size()));
    out.tags.columns.insert(out.tags.columns.end(), tags_.begin() + std::ptrdiff_t(tag_ends_[row]),
                            tags_.begin() + std::ptrdiff_t(tag_ends_[row + 1]));
    out.tags.offsets.push_back(std::uint32_t(out.tags.columns.size()));
  }
}

}  // namespace fedep
