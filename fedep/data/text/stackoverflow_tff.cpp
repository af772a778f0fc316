#include "fedep/data/text/stackoverflow_tff.h"

#include <algorithm>
#include <cstdint>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <hdf5.h>
#include <nlohmann/json.hpp>

#include "fedep/data/data_file.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/text/stackoverflow.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

// An object of the HDF5 library, closed at the end of its life.
class Handle {
 public:
  Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)), close_(other.close_) {}
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle& operator=(Handle&&) = delete;
  ~Handle() {
    if (id_ >= 0) close_(id_);
  }

  hid_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// A file of clients' questions.
class ClientFile {
 public:
  explicit ClientFile(const std::filesystem::path& path)
      : path_(path.string()),
        file_(open(path)),
        examples_(H5Gopen2(file_.id(), "examples", H5P_DEFAULT), H5Gclose) {
    if (!examples_) refuse("expected a group examples, but there is none");
    hsize_t at = 0;
    H5Literate(
        examples_.id(), H5_INDEX_NAME, H5_ITER_INC, &at,
        [](hid_t, const char* name, const H5L_info_t*, void* to) -> herr_t {
          static_cast<std::vector<std::string>*>(to)->emplace_back(name);
          return 0;
        },
        &clients_);
    if (clients_.empty()) refuse("expected clients in examples, but there is none");
  }

  const std::vector<std::string>& clients() const { return clients_; }

  // In stored order.
  std::vector<Question> questions(const std::string& client) const {
    const Handle group(H5Gopen2(examples_.id(), client.c_str(), H5P_DEFAULT), H5Gclose);
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
  static Handle open(const std::filesystem::path& path) {
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);  // it prints otherwise
    check_data_exists("stackoverflow_tff", path);
    Handle file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
    if (!file) {
      throw InputError(fmt::format(
          "stackoverflow: {} must be an HDF5 file, but cannot be read as one", path.string()));
    }
    return file;
  }

  [[noreturn]] void refuse(const std::string& why) const {
    throw InputError(fmt::format("stackoverflow: {}: {}", path_, why));
  }

  std::vector<std::string> strings(const Handle& group, const std::string& client,
                                   const char* name) const {
    const Handle array(H5Dopen2(group.id(), name, H5P_DEFAULT), H5Dclose);
    if (!array)
      refuse(fmt::format("client {}: expected {}, but there is none", shown(client), name));
    const Handle type(H5Dget_type(array.id()), H5Tclose);
    const Handle space(H5Dget_space(array.id()), H5Sclose);
    const bool is_text =
        H5Tget_class(type.id()) == H5T_STRING && H5Sget_simple_extent_ndims(space.id()) == 1;
    if (!is_text)
      refuse(fmt::format("client {}: {} must be a list of strings", shown(client), name));
    const auto count = std::size_t(H5Sget_simple_extent_npoints(space.id()));
    std::vector<std::string> out;
    herr_t status = 0;
    if (H5Tis_variable_str(type.id()) > 0) {
      std::vector<char*> texts(count, nullptr);
      status = H5Dread(array.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data());
      if (status >= 0) {
        for (const char* text : texts) out.emplace_back(text == nullptr ? "" : text);
        H5Dvlen_reclaim(type.id(), space.id(), H5P_DEFAULT, texts.data());
      }
    } else {
      const std::size_t width = H5Tget_size(type.id());
      std::vector<char> texts(count * width);
      status = H5Dread(array.id(), type.id(), H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data());
      for (std::size_t i = 0; i < count; ++i) {
        const std::string_view text(texts.data() + i * width, width);
        out.emplace_back(text.substr(0, text.find('\0')));
      }
    }
    if (status < 0) refuse(fmt::format("client {}: {} cannot be read", shown(client), name));
    return out;
  }

  std::string path_;
  Handle file_;
  Handle examples_;
  std::vector<std::string> clients_;
};

// A client's first max_examples; none if it has fewer than min_examples in all.
std::vector<Question> training_questions(const ClientFile& file, const std::string& client,
                                         const DataSettings& settings) {
  std::vector<Question> questions = file.questions(client);
  if (int(questions.size()) < settings.min_examples) return {};
  if (settings.max_examples > 0) {
    questions.resize(std::min(questions.size(), std::size_t(settings.max_examples)));
  }
  return questions;
}

Vocabulary find_vocabulary(const std::filesystem::path& folder, const ClientFile& train,
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
  const auto counts = nlohmann::ordered_json::parse(read_data_text("stackoverflow", file), nullptr,
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
  const ClientFile train_file(place / kTffTrainFile);
  const ClientFile test_file(place / kTffTestFile);
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
