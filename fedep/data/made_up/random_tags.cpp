#include "fedep/data/made_up/random_tags.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/partition.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr double kSizeRatio = 1279.0 / 397.0;  // deviation of a client's examples over their mean
constexpr std::size_t kLikedTags = 4;
constexpr double kLikes = 0.8;                            // that a tag is one of those
constexpr std::size_t kMostTags = 3;                      // of an example
constexpr std::size_t kFewestWords = 5, kMoreWords = 11;  // of an example: 5 to 15
constexpr double kOwnWords = 0.5;                         // that a word is one of a tag's own
constexpr std::size_t kWordsOfATag = 40;
constexpr std::size_t kTestClients = 1000, kTestExamples = 10;

// Steps of a client's address; examples come after.
enum : std::uint32_t { kClient, kFirstExample };

// Numbers below `count`, of which k comes up in proportion to 1 / (k + 1).
class Zipf {
 public:
  explicit Zipf(std::size_t count) : upto_(count) {
    double sum = 0;
    for (std::size_t k = 0; k < count; ++k) upto_[k] = sum += 1 / double(k + 1);
  }
  std::size_t draw(Stream& stream) const {
    const double at = stream.uniform() * upto_.back();
    const auto found = std::upper_bound(upto_.begin(), upto_.end() - 1, at);
    return std::size_t(found - upto_.begin());
  }

 private:
  std::vector<double> upto_;
};

struct MadeClient {
  std::size_t examples = 0;
  std::array<std::size_t, kLikedTags> tags{};
};

class RandomTags final : public Dataset {
 public:
  RandomTags(const DataSettings& settings, std::uint64_t seed)
      : seed_(seed),
        words_(std::size_t(settings.dimension)),
        tags_(std::size_t(settings.tags)),
        own_words_(kWordsOfATag),
        mean_examples_(settings.examples) {
    info_.name = settings.name;
    info_.features = {settings.dimension};
    info_.sparse = true;
    info_.target = TargetKind::tags;
    info_.outputs = std::size_t(settings.tags);
    clients_.reserve(std::size_t(settings.clients));
    for (int k = 0; k < settings.clients; ++k) {
      std::string id = fmt::format("client-{}", k);
      std::size_t examples = make_client(client_key(id)).examples;
      if (examples < std::size_t(settings.min_examples)) continue;
      if (settings.max_examples > 0) {
        examples = std::min(examples, std::size_t(settings.max_examples));
      }
      clients_.emplace_back(std::move(id), examples);
    }
    check_clients_left(settings.name, clients_.size(), settings);
    for (std::size_t k = 0; k < kTestClients; ++k) {
      test_clients_.push_back(fmt::format("test-{}", k));
    }
  }

  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }

  void train_batch(std::size_t client, std::span<const std::uint32_t> examples, const Address*,
                   Batch& out) const override {
    check_in("train_batch", "client", double(client), 0, double(clients_.size()) - 1);
    const auto& [id, count] = clients_[client];
    const std::uint64_t key = client_key(id);
    const MadeClient made = make_client(key);
    clear(out);
    for (const std::uint32_t example : examples) {
      if (example >= count) {
        fail("train_batch", "example", fmt::format("below {}", count), fmt::format("{}", example));
      }
      add_example(key, made, example, out);
    }
  }

  bool made_when_asked() const override { return true; }

  std::size_t test_size() const override { return kTestClients * kTestExamples; }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    if (begin > end || end > test_size()) {
      fail("test_batch", "range", fmt::format("within [0, {}]", test_size()),
           fmt::format("[{}, {})", begin, end));
    }
    clear(out);
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint64_t key = client_key(test_clients_[test_client(i)]);
      add_example(key, make_client(key), std::uint32_t(i % kTestExamples), out);
    }
  }
  const std::vector<std::string>& test_clients() const override { return test_clients_; }
  std::size_t test_client(std::size_t example) const override {
    check_in("test_client", "example", double(example), 0, double(test_size()) - 1);
    return example / kTestExamples;
  }

 private:
  static void clear(Batch& out) { out = Batch{}; }

  Stream stream_of(std::uint64_t key, std::uint32_t step) const {
    return Stream({.seed = seed_, .purpose = Purpose::synthetic_data, .client = key, .step = step});
  }

  MadeClient make_client(std::uint64_t key) const {
    const double variance = std::log1p(kSizeRatio * kSizeRatio);  // of the logarithm
    Stream stream = stream_of(key, kClient);
    const double size =
        mean_examples_ * std::exp(std::sqrt(variance) * stream.normal() - variance / 2);
    MadeClient client{.examples = std::size_t(std::clamp(std::round(size), 1.0, 1e9)), .tags = {}};
    for (std::size_t& tag : client.tags) tag = tags_.draw(stream);
    return client;
  }

  // Which word a tag's rank-th own one is: always the same, anywhere in the vocabulary.
  std::uint32_t own_word(std::size_t tag, std::size_t rank) const {
    const std::uint64_t mixed = (tag * kWordsOfATag + rank + 1) * 0x9E3779B97F4A7C15u;
    return std::uint32_t((mixed >> 32) % std::uint64_t(info_.features[0]));
  }

  void add_example(std::uint64_t key, const MadeClient& client, std::uint32_t example,
                   Batch& out) const {
    Stream stream = stream_of(key, kFirstExample + example);
    std::array<std::uint32_t, kMostTags> tags{};
    const std::size_t tag_count = 1 + stream.below(kMostTags);
    for (std::size_t i = 0; i < tag_count; ++i) {
      const bool liked = stream.uniform() < kLikes;
      tags[i] = std::uint32_t(liked ? client.tags[stream.below(kLikedTags)] : tags_.draw(stream));
    }
    std::array<std::uint32_t, kFewestWords + kMoreWords> words{};
    const std::size_t word_count = kFewestWords + stream.below(kMoreWords);
    for (std::size_t i = 0; i < word_count; ++i) {
      const bool own = stream.uniform() < kOwnWords;
      words[i] = own ? own_word(tags[stream.below(tag_count)], own_words_.draw(stream))
                     : std::uint32_t(words_.draw(stream));
    }
    std::sort(tags.begin(), tags.begin() + std::ptrdiff_t(tag_count));
    std::sort(words.begin(), words.begin() + std::ptrdiff_t(word_count));
    for (std::size_t i = 0; i < tag_count; ++i) {
      if (i == 0 || tags[i] != tags[i - 1]) out.tags.columns.push_back(tags[i]);
    }
    for (std::size_t i = 0; i < word_count; ++i) {
      const float share = 1.0f / float(word_count);
      if (i > 0 && words[i] == words[i - 1]) {
        out.sparse.values.back() += share;
      } else {
        out.sparse.columns.push_back(words[i]);
        out.sparse.values.push_back(share);
      }
    }
    out.tags.offsets.push_back(std::uint32_t(out.tags.columns.size()));
    out.sparse.offsets.push_back(std::uint32_t(out.sparse.columns.size()));
    ++out.size;
  }

  std::uint64_t seed_;
  Zipf words_, tags_, own_words_;
  double mean_examples_;
  DatasetInfo info_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::string> test_clients_;
};

}  // namespace

std::unique_ptr<Dataset> open_random_tags(const DataSettings& settings, std::uint64_t seed,
                                          const std::filesystem::path&) {
  check_positive("data set random_tags", "data.clients", settings.clients);
  check_positive("data set random_tags", "data.dimension", settings.dimension);
  check_positive("data set random_tags", "data.examples", settings.examples);
  check_positive("data set random_tags", "data.tags", settings.tags);
  if (settings.validation_fraction > 0 || settings.calibration_fraction > 0) {
    throw InputError(
        "data.validation_fraction and data.calibration_fraction must be 0 with random_tags, whose "
        "examples are made when they are asked for, but are not; settings can be chosen with "
        "another seed");
  }
  return std::make_unique<RandomTags>(settings, seed);
}

}  // namespace fedep
