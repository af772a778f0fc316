#include "fedep/data/text/stackoverflow.h"

#include <algorithm>
#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/data/holdout.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/table/delimited.h"
#include "fedep/data/text/stackoverflow_tff.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

struct User {
  std::string id;
  std::vector<Question> questions;
};

struct Users {
  std::vector<User> users;  // in order of first appearance
  std::size_t skipped = 0;
};

std::size_t either(const DelimitedTable& table, const char* name, const char* other) {
  return table.column(!table.has(name) && table.has(other) ? other : name);
}

Users read_users(const std::filesystem::path& file) {
  check_data_exists("stackoverflow", file);
  const DelimitedTable table = read_delimited(file, kTsv);
  const std::size_t user = either(table, "user_id", "user");
  const std::size_t tags = table.column("tags");
  std::vector<std::size_t> texts{either(table, "text", "title")};
  if (table.has("text") && table.has("title")) texts.push_back(table.column("title"));

  Users out{{}, table.bad_records};
  std::map<std::string, std::size_t> place;
  for (const std::vector<std::string>& row : table.rows) {
    Question question{{}, split_any(row[tags], " |")};
    if (row[user].empty() || question.tags.empty()) {
      ++out.skipped;
      continue;
    }
    for (const std::size_t text : texts) {
      for (std::string& word : title_words(row[text])) question.words.push_back(std::move(word));
    }
    const auto [at, is_new] = place.try_emplace(row[user], out.users.size());
    if (is_new) out.users.push_back({row[user], {}});
    out.users[at->second].questions.push_back(std::move(question));
  }
  return out;
}

struct SplitUser {
  std::vector<Question> train, test;
};

SplitUser split(User user, const DataSettings& settings) {
  SplitUser out;
  const bool is_client = int(user.questions.size()) >= settings.min_examples;
  if (!is_client) {
    out.test = std::move(user.questions);
    return out;
  }
  const std::vector<bool> test = held_out(user.id, user.questions.size(), settings.test_fraction);
  for (std::size_t i = 0; i < test.size(); ++i) {
    (test[i] ? out.test : out.train).push_back(std::move(user.questions[i]));
  }
  if (settings.max_examples > 0) {
    out.train.resize(std::min(out.train.size(), std::size_t(settings.max_examples)));
  }
  return out;
}

std::unique_ptr<Dataset> open_tsv(const DataSettings& settings, const std::filesystem::path& file) {
  Users users = read_users(file);
  std::vector<SplitUser> parts;
  VocabularyCounter counter;
  bool any = false;
  for (User& user : users.users) {
    parts.push_back(split({user.id, std::move(user.questions)}, settings));
    if (parts.back().train.empty()) continue;
    counter.add_user(parts.back().train);
    any = true;
  }
  if (!any) {
    throw InputError(fmt::format("{}: expected users with at least {} questions, but there is none",
                                 file.string(), settings.min_examples));
  }
  const Vocabulary vocabulary = counter.vocabulary(kStackoverflowWords, kStackoverflowTags);
  auto train = std::make_unique<QuestionRows>(vocabulary);
  auto test = std::make_unique<QuestionRows>(vocabulary);
  ClientRows train_clients, test_clients;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::string& id = users.users[k].id;
    for (const Question& question : parts[k].train) train->add(question);
    for (const Question& question : parts[k].test) test->add(question);
    if (!parts[k].train.empty()) train_clients.add(id, parts[k].train.size());
    if (!parts[k].test.empty()) test_clients.add(id, parts[k].test.size());
  }
  return memory_dataset(question_info(settings, vocabulary, users.skipped),
                        {std::move(train_clients), std::move(train)},
                        {std::move(test_clients), std::move(test)});
}

bool is_word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
         static_cast<unsigned char>(c) >= 0x80 ||
         std::string_view("+#._'-").find(c) != std::string_view::npos;
}

}  // namespace

std::vector<std::string> title_words(std::string_view text) {
  std::vector<std::string> words;
  std::string word;
  const auto finish = [&] {
    word.erase(word.find_last_not_of("._'-") + 1);  // npos + 1 = 0: nothing but these
    word.erase(0, std::min(word.find_first_not_of("_'-"), word.size()));
    if (!word.empty()) words.push_back(std::move(word));
    word.clear();
  };
  for (char c : text) {
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
    if (is_word_character(c)) {
      word.push_back(c);
    } else {
      finish();
    }
  }
  finish();
  return words;
}

std::vector<std::string> split_any(std::string_view text, std::string_view separators) {
  std::vector<std::string> pieces;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(separators), text.size());
    if (end > 0) pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return pieces;
}

DatasetInfo question_info(const DataSettings& settings, const Vocabulary& vocabulary,
                          std::size_t skipped_records) {
  return {.name = settings.name,
          .features = {std::int64_t(vocabulary.words.size())},
          .sparse = true,
          .target = TargetKind::tags,
          .outputs = vocabulary.tags.size(),
          .skipped_records = skipped_records,
          .feature_names = vocabulary.words,
          .output_names = vocabulary.tags};
}

std::unique_ptr<Dataset> open_stackoverflow(const DataSettings& settings, std::uint64_t seed,
                                            const std::filesystem::path& folder) {
  const std::filesystem::path place = folder / settings.path;
  std::error_code error;
  if (std::filesystem::exists(place / kTffTrainFile, error)) {
    return open_stackoverflow_tff(settings, seed, folder);
  }
  const bool is_file = std::filesystem::is_regular_file(place, error);
  return open_tsv(settings, is_file ? place : place / "questions.tsv");
}

}  // namespace fedep
