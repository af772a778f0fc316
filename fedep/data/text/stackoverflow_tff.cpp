#include "fedep/data/text/stackoverflow_tff.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fedep/data/data_file.h"
#include "fedep/data/hdf5_file.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/text/stackoverflow.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/message/nesting.h"

namespace fedep {
namespace {

// A file of clients' questions.
class ClientFile {
 public:
  explicit ClientFile(const std::filesystem::path& path)
      : path_(path.string()),
        file_("stackoverflow_tff", path),
        examples_(open_hdf5_group(file_.id(), "examples")) {
    if (!examples_) refuse("expected a group examples, but there is none");
    if (!list_hdf5_names(examples_.id(), file_.most_names(), clients_)) {
      refuse("expected clients in examples, but they cannot be read");
    }
    if (clients_.empty()) refuse("expected clients in examples, but there is none");
  }

  const std::vector<std::string>& clients() const { return clients_; }

  // In stored order.
  std::vector<Question> questions(const std::string& client) {
    const Hdf5Handle group = open_hdf5_group(examples_.id(), client);
    if (!group) refuse(fmt::format("cannot open client {}", shown(client)));
    const std::vector<std::string> tokens = strings(group, client, "tokens");
    const std::vector<std::string> title = strings(group, client, "title");
    const std::vector<std::string> tags = strings(group, client, "tags");
    if (tokens.size() != title.size() || tokens.size() != tags.size()) {
      refuse(
          fmt::format("client {}: expected as many tokens as titles and tags, but there are {}, "
                      "{} and {}",
                      shown(client), tokens.size(), title.size(), tags.size()));
    }
    std::vector<Question> out;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      out.push_back(
          {split_any(tokens[i] + " " + title[i], " \t\n\r\v\f"), split_any(tags[i], "|")});
    }
    return out;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("stackoverflow: {}: {}", path_, why));
  }

  std::vector<std::string> strings(const Hdf5Handle& group, const std::string& client,
                                   const char* name) {
    const Hdf5Handle array = open_hdf5_array(group.id(), name);
    if (!array)
      refuse(fmt::format("client {}: expected {}, but there is none", shown(client), name));
    std::vector<std::string> out;
    if (!read_hdf5_strings(array.id(), file_.budget(), out)) {
      refuse(fmt::format("client {}: {} must be a list of strings", shown(client), name));
    }
    return out;
  }

  std::string path_;
  Hdf5File file_;
  Hdf5Handle examples_;
  std::vector<std::string> clients_;
};

// A client's first max_examples; none if it has fewer than min_examples in all.
std::vector<Question> training_questions(ClientFile& file, const std::string& client,
                                         const DataSettings& settings) {
  std::vector<Question> questions = file.questions(client);
  if (int(questions.size()) < settings.min_examples) return {};
  if (settings.max_examples > 0) {
    questions.resize(std::min(questions.size(), std::size_t(settings.max_examples)));
  }
  return questions;
}

Vocabulary find_vocabulary(const std::filesystem::path& folder, ClientFile& train,
                           const DataSettings& settings) {
  const std::filesystem::path words = folder / "stackoverflow.word_count";
  const std::filesystem::path tags = folder / "stackoverflow.tag_count";
  std::error_code error;
  const bool has_words = std::filesystem::exists(words, error);
  const bool has_tags = std::filesystem::exists(tags, error);
  Vocabulary out;
  if (!has_words || !has_tags) {
    VocabularyCounter counter;
    for (const std::string& client : train.clients()) {
      counter.add_user(training_questions(train, client, settings));
    }
    out = counter.vocabulary(kStackoverflowWords, kStackoverflowTags);
  }
  if (has_words) out.words = read_word_counts(words, kStackoverflowWords);
  if (has_tags) out.tags = read_tag_counts(tags, kStackoverflowTags);
  return out;
}

}  // namespace

std::vector<std::string> read_word_counts(const std::filesystem::path& file, std::size_t size) {
  std::istringstream lines(read_data_text("stackoverflow", file));
  std::vector<std::string> words;
  std::string line;
  while (words.size() < size && std::getline(lines, line)) {
    const std::vector<std::string> fields = split_any(line, " \t\r");
    if (fields.size() != 2) {
      throw InputError(
          fmt::format("stackoverflow: {}: line {} must be a word and a count, but is {}",
                      file.string(), words.size() + 1, shown(line)));
    }
    words.push_back(fields.front());
  }
  return words;
}

std::vector<std::string> read_tag_counts(const std::filesystem::path& file, std::size_t size) {
  const std::string text = read_data_text("stackoverflow", file);
  const auto counts = nlohmann::ordered_json::parse(shallow_json(text), nullptr,
                                                    /*allow_exceptions=*/false);
  std::vector<std::pair<std::string, std::int64_t>> order;
  bool good = counts.is_object();
  if (good) {
    for (const auto& [tag, count] : counts.items()) {
      good = good && count.is_number_integer();
      if (good) order.emplace_back(tag, count.template get<std::int64_t>());
    }
  }
  if (!good) {
    throw InputError(fmt::format("stackoverflow: {} must be a JSON object of counts, but is not",
                                 file.string()));
  }
  // Equals stay in the file's order, as in TFF.
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> tags;
  for (std::size_t i = 0; i < std::min(size, order.size()); ++i) tags.push_back(order[i].first);
  return tags;
}

std::unique_ptr<Dataset> open_stackoverflow_tff(const DataSettings& settings, std::uint64_t,
                                                const std::filesystem::path& folder) {
  const std::filesystem::path place = folder / settings.path;
  ClientFile train_file(place / kTffTrainFile);
  ClientFile test_file(place / kTffTestFile);
  const Vocabulary vocabulary = find_vocabulary(place, train_file, settings);

  auto train = std::make_unique<QuestionRows>(vocabulary);
  auto test = std::make_unique<QuestionRows>(vocabulary);
  ClientRows train_clients, test_clients;
  for (const std::string& client : train_file.clients()) {
    const std::vector<Question> questions = training_questions(train_file, client, settings);
    if (questions.empty()) continue;
    for (const Question& question : questions) train->add(question);
    train_clients.add(client, questions.size());
  }
  for (const std::string& client : test_file.clients()) {
    const std::vector<Question> questions = test_file.questions(client);
    for (const Question& question : questions) test->add(question);
    test_clients.add(client, questions.size());
  }
  return memory_dataset(question_info(settings, vocabulary, 0),
                        {std::move(train_clients), std::move(train)},
                        {std::move(test_clients), std::move(test)});
}

}  // namespace fedep
