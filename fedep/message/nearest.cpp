#include "fedep/message/nearest.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace fedep {
namespace {

// A longer name is not compared, nor shown in full: nobody meant it.
constexpr std::size_t kLongestWord = 64;

// Shorter common beginnings say nothing: every word begins with some letter.
constexpr std::size_t kShortestBeginning = 3;

char plain(char c) {
  if (c >= 'A' && c <= 'Z') return static_cast<char>(c - 'A' + 'a');
  return c == '-' ? '_' : c;
}

bool one_begins_the_other(std::string_view a, std::string_view b) {
  const std::size_t n = std::min(a.size(), b.size());
  if (n < kShortestBeginning) return false;
  return std::equal(a.begin(), a.begin() + n, b.begin(),
                    [](char x, char y) { return plain(x) == plain(y); });
}

// The same letters, whatever their case and the dashes between them.
bool same_letters(std::string_view a, std::string_view b) {
  const auto letters = [](std::string_view word) {
    std::string found;
    for (const char c : word) {
      if (plain(c) != '_') found += plain(c);
    }
    return found;
  };
  return letters(a) == letters(b);
}

bool is_plain_word(std::string_view name) {
  if (name.empty() || name.size() > kLongestWord) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("_-./+").find(c) != std::string_view::npos;
  });
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // before, last and row hold the distances of the first i-2, i-1 and i letters of a to every
  // beginning of b.
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = plain(a[i - 1]) == plain(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 && plain(a[i - 1]) == plain(b[j - 2]) &&
                           plain(a[i - 2]) == plain(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

std::optional<std::string_view> nearest(std::string_view word,
                                        std::span<const std::string_view> candidates) {
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string_view> best;
  std::pair<std::size_t, bool> best_rank;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    // One slip in a word of up to five letters, two in up to eight, and so on.
    const std::size_t longer = std::max(word.size(), candidate.size());
    const bool near = distance < longer && distance <= std::max<std::size_t>(1, longer / 3);
    if (!near && !one_begins_the_other(word, candidate)) continue;
    const std::pair rank{distance, !same_letters(word, candidate)};
    if (best && rank >= best_rank) continue;
    best = candidate;
    best_rank = rank;
  }
  return best;
}

std::string suggestion(std::string_view word, std::span<const std::string_view> candidates) {
  const auto near = nearest(word, candidates);
  return near ? fmt::format("; did you mean {}?", shown(*near)) : std::string();
}

std::string unknown_name(std::string_view kind, std::string_view word,
                         std::span<const std::string_view> candidates) {
  const std::string hint = suggestion(word, candidates);
  std::vector<std::string> known;
  for (const std::string_view candidate : candidates) known.push_back(shown(candidate));
  return fmt::format("unknown {} {}{} known: {}", kind, shown(word), hint.empty() ? ";" : hint,
                     known.empty() ? "none" : fmt::format("{}", fmt::join(known, ", ")));
}

std::string shown(std::string_view name) {
  if (is_plain_word(name)) return std::string(name);
  std::string text = "\"";
  for (const char c : name.substr(0, kLongestWord)) {
    const bool control = static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
    text += control ? '?' : c;
  }
  return text + (name.size() > kLongestWord ? "…\"" : "\"");
}

std::string shown_list(std::span<const std::string> names, std::size_t most) {
  std::vector<std::string> some;
  for (const std::string& name : names.first(std::min(most, names.size()))) {
    some.push_back(shown(name));
  }
  const std::size_t more = names.size() - some.size();
  return fmt::format("{}{}", fmt::join(some, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : "");
}

}  // namespace fedep
