#include "fedep/data/text/stackoverflow_tff.h"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "fedep/data/data_file.h"
#include "fedep/data/hdf5_file.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/read_apart.h"
#include "fedep/data/text/stackoverflow.h"
#include "fedep/message/check.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/message/parse_json.h"

namespace fedep {
namespace {

constexpr const char* kTexts[] = {"tokens", "title", "tags"};  // of a client's questions

// The strings of a list as two sections: their bytes, and how long each is.
struct PackedTexts {
  std::vector<std::uint8_t> bytes;
  std::vector<std::int64_t> sizes;
};

PackedTexts pack(const std::vector<std::string>& texts) {
  PackedTexts out;
  for (const std::string& text : texts) {
    out.bytes.insert(out.bytes.end(), text.begin(), text.end());
    out.sizes.push_back(std::int64_t(text.size()));
  }
  return out;
}

std::vector<std::string> unpack(Record& record, const std::string& name) {
  const auto bytes = record.extract<std::uint8_t>(name);
  std::vector<std::string> out;
  std::size_t at = 0;
  for (const std::int64_t size : record.extract<std::int64_t>(name + ".sizes")) {
    check_in(name, "size", double(size), 0, double(bytes.size() - at));
    const auto begin = bytes.begin() + std::ptrdiff_t(at);
    out.emplace_back(begin, begin + size);
    at += std::size_t(size);
  }
  return out;
}

// In the other process: a record for each client.
void send_file(const std::filesystem::path& path, const RecordSender& send) {
  const auto refuse = [&](const std::string& why) {
    throw InputError(fmt::format("stackoverflow: {}: {}", path.string(), why));
  };
  Hdf5File file("stackoverflow_tff", path);
  const Hdf5Handle examples = open_hdf5_group(file.id(), "examples");
  if (!examples) refuse("expected a group examples, but there is none");
  std::vector<std::string> clients;
  if (!list_hdf5_names(examples.id(), file.most_names(), clients) || clients.empty()) {
    refuse("expected clients in examples, but there is none");
  }
  for (const std::string& client : clients) {
    const Hdf5Handle group = open_hdf5_group(examples.id(), client);
    if (!group) refuse(fmt::format("cannot open client {}", shown(client)));
    std::vector<PackedTexts> texts{pack({client})};
    std::vector<SectionView> sections;
    for (const char* name : kTexts) {
      const Hdf5Handle array = open_hdf5_array(group.id(), name);
      if (!array) {
        refuse(fmt::format("client {}: expected {}, but there is none", shown(client), name));
      }
      std::vector<std::string> strings;
      if (!read_hdf5_strings(array.id(), file.budget(), strings)) {
        refuse(fmt::format("client {}: {} must be a list of strings", shown(client), name));
      }
      texts.push_back(pack(strings));
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string name = i == 0 ? "client" : kTexts[i - 1];
      sections.push_back({name, std::span<const std::uint8_t>(texts[i].bytes)});
      sections.push_back({name + ".sizes", std::span<const std::int64_t>(texts[i].sizes)});
    }
    send(sections);
  }
}

using QuestionSink =
    std::function<void(const std::string& client, std::vector<Question> questions)>;

// Client after client, each one's questions in stored order.
void read_questions(const std::filesystem::path& path, const QuestionSink& sink) {
  const auto take = [&](Record record) {
    const std::vector<std::string> client = unpack(record, "client");
    const std::vector<std::string> tokens = unpack(record, "tokens");
    const std::vector<std::string> title = unpack(record, "title");
    const std::vector<std::string> tags = unpack(record, "tags");
    if (client.size() != 1 || tokens.size() != title.size() || tokens.size() != tags.size()) {
      throw InputError(
          fmt::format("stackoverflow: {}: client {}: expected as many tokens as titles and tags, "
                      "but there are {}, {} and {}",
                      path.string(), shown(client.empty() ? "" : client[0]), tokens.size(),
                      title.size(), tags.size()));
    }
    std::vector<Question> questions;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      questions.push_back(
          {split_any(tokens[i] + " " + title[i], " \t\n\r\v\f"), split_any(tags[i], "|")});
    }
    sink(client[0], std::move(questions));
  };
  read_apart(
      "stackoverflow_tff", path, [&](const RecordSender& send) { send_file(path, send); }, take);
}

// A client's first max_examples; none if it has fewer than min_examples in all.
std::vector<Question> training_questions(std::vector<Question> questions,
                                         const DataSettings& settings) {
  if (int(questions.size()) < settings.min_examples) return {};
  if (settings.max_examples > 0) {
    questions.resize(std::min(questions.size(), std::size_t(settings.max_examples)));
  }
  return questions;
}

Vocabulary find_vocabulary(const std::filesystem::path& folder, const std::filesystem::path& train,
                           const DataSettings& settings) {
  const std::filesystem::path words = folder / "stackoverflow.word_count";
  const std::filesystem::path tags = folder / "stackoverflow.tag_count";
  std::error_code error;
  const bool has_words = std::filesystem::exists(words, error);
  const bool has_tags = std::filesystem::exists(tags, error);
  Vocabulary out;
  if (!has_words || !has_tags) {
    VocabularyCounter counter;
    read_questions(train, [&](const std::string&, std::vector<Question> questions) {
      counter.add_user(training_questions(std::move(questions), settings));
    });
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
  const auto counts = find_json(text).value_or(nullptr);
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
  const std::filesystem::path train_file = place / kTffTrainFile, test_file = place / kTffTestFile;
  for (const auto& file : {train_file, test_file}) check_data_exists("stackoverflow_tff", file);
  const Vocabulary vocabulary = find_vocabulary(place, train_file, settings);

  auto train = std::make_unique<QuestionRows>(vocabulary);
  auto test = std::make_unique<QuestionRows>(vocabulary);
  ClientRows train_clients, test_clients;
  read_questions(train_file, [&](const std::string& client, std::vector<Question> all) {
    const std::vector<Question> questions = training_questions(std::move(all), settings);
    if (questions.empty()) return;
    for (const Question& question : questions) train->add(question);
    train_clients.add(client, questions.size());
  });
  read_questions(test_file, [&](const std::string& client, std::vector<Question> questions) {
    for (const Question& question : questions) test->add(question);
    test_clients.add(client, questions.size());
  });
  return memory_dataset(question_info(settings, vocabulary, 0),
                        {std::move(train_clients), std::move(train)},
                        {std::move(test_clients), std::move(test)});
}

}  // namespace fedep
