#include "fedep/data/image/image_dataset.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/partition_kinds.h"
#include "fedep/message/check.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

class ImageDataset final : public Dataset {
 public:
  explicit ImageDataset(ImageTask task) : task_(std::move(task)) {
    for (std::size_t c = 0; c < task_.train.ids.size(); ++c) {
      clients_.emplace_back(task_.train.ids[c], task_.train.examples[c].size());
    }
    for (std::size_t c = 0; c < task_.test.ids.size(); ++c) {
      for (const std::uint32_t example : task_.test.examples[c]) {
        test_order_.push_back(example);
        test_client_.push_back(std::uint32_t(c));
      }
    }
  }

  const DatasetInfo& info() const override { return task_.info; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }

  void train_batch(std::size_t client, std::span<const std::uint32_t> examples, const Address*,
                   Batch& out) const override {
    const std::vector<std::uint32_t>& own = task_.train.examples.at(client);
    reset(examples.size(), out);
    for (std::size_t i = 0; i < examples.size(); ++i) {
      copy(task_.train, own.at(examples[i]), i, out);
    }
  }

  std::optional<RawImages> raw_images() const override {
    return RawImages{.pixels = task_.train.pixels,
                     .labels = task_.train.labels,
                     .clients = task_.train.examples,
                     .crop = std::nullopt};
  }

  std::size_t test_size() const override { return test_order_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    check_in("test_batch", "end", double(end), double(begin), double(test_size()));
    reset(end - begin, out);
    for (std::size_t i = begin; i < end; ++i) copy(task_.test, test_order_[i], i - begin, out);
  }
  const std::vector<std::string>& test_clients() const override { return task_.test.ids; }
  std::size_t test_client(std::size_t example) const override { return test_client_.at(example); }

 private:
  void reset(std::size_t size, Batch& out) const {
    out.size = size;
    out.dense.resize(size * task_.info.feature_count());
    out.labels.resize(size);
  }

  void copy(const ImagePart& part, std::size_t from, std::size_t to, Batch& out) const {
    const std::size_t n = task_.info.feature_count();
    const std::uint8_t* const pixels = part.pixels.data() + from * n;
    float* const floats = out.dense.data() + to * n;
    for (std::size_t i = 0; i < n; ++i) floats[i] = float(pixels[i]) / 255.0f;
    out.labels[to] = part.labels[from];
  }

  ImageTask task_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::uint32_t> test_order_;
  std::vector<std::uint32_t> test_client_;
};

// Those of the part's clients whose ids `chosen` has, in its order.
void keep_clients(ImagePart& part, const std::vector<std::string>& chosen) {
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t c = 0; c < part.ids.size(); ++c) places.emplace(part.ids[c], c);
  std::vector<std::string> ids;
  Partition examples;
  for (const std::string& id : chosen) {
    const auto found = places.find(id);
    if (found == places.end()) continue;
    ids.push_back(id);
    examples.push_back(std::move(part.examples[found->second]));
  }
  part.ids = std::move(ids);
  part.examples = std::move(examples);
}

// Who has no training example cannot take part, and its held-out ones say nothing about those who
// do: they are left out and counted. Throws InputError if nobody has both.
void leave_out_strangers(ImageTask& task) {
  const std::unordered_set<std::string_view> training(task.train.ids.begin(), task.train.ids.end());
  std::vector<std::string> known;
  for (std::size_t c = 0; c < task.test.ids.size(); ++c) {
    const std::string& id = task.test.ids[c];
    if (training.contains(id)) {
      known.push_back(id);
      continue;
    }
    if (task.info.first_skipped.empty()) {
      task.info.first_skipped =
          fmt::format("client {} has held-out examples, but none to train on", shown(id));
    }
    task.info.skipped_records += task.test.examples[c].size();
  }
  if (known.empty() && !task.test.ids.empty()) {
    throw InputError(fmt::format(
        "{}: some client must have both training and held-out examples, but none of {} and {} has",
        task.info.name, task.train.ids.size(), task.test.ids.size()));
  }
  if (known.size() < task.test.ids.size()) keep_clients(task.test, known);
}

std::vector<std::string> test_only(const ImageTask& task) {
  const std::unordered_set<std::string_view> training(task.train.ids.begin(), task.train.ids.end());
  std::vector<std::string> out;
  for (const std::string& id : task.test.ids) {
    if (!training.contains(id)) out.push_back(id);
  }
  return out;
}

void partition_naturally(ImageTask& task, const DataSettings& settings) {
  std::vector<std::string> strangers;
  if (task.keeps_test_only) {
    strangers = test_only(task);
  } else {
    leave_out_strangers(task);
  }
  // A client takes part in training if it can; its test examples come along, however few.
  std::vector<std::string> chosen;
  for (const std::size_t c : limit_clients(task.train.examples, settings)) {
    chosen.push_back(std::move(task.train.ids[c]));
  }
  task.train.ids = chosen;
  chosen.insert(chosen.end(), strangers.begin(), strangers.end());
  keep_clients(task.test, chosen);
}

void number_clients(ImagePart& part, std::string_view prefix) {
  part.ids.clear();
  for (std::size_t c = 0; c < part.examples.size(); ++c) {
    part.ids.push_back(fmt::format("{}{}", prefix, c));
  }
}

void partition_anew(ImageTask& task, const DataSettings& settings, std::uint64_t seed,
                    const std::filesystem::path& folder) {
  const std::size_t clients = std::size_t(std::max(settings.clients, 0));
  task.train.examples = make_partition(settings,
                                       {.dataset = task.info.name,
                                        .labels = task.train.labels,
                                        .index_file = folder / "partition_train.i32",
                                        .names_clients = true},
                                       {.clients = clients, .seed = seed, .part = 0});
  limit_clients(task.train.examples, settings);
  number_clients(task.train, "");
  if (task.test.size() > 0) {
    task.test.examples =
        make_partition(settings,
                       {.dataset = task.info.name,
                        .labels = task.test.labels,
                        .index_file = folder / "partition_test.i32",
                        .names_clients = true},
                       {.clients = test_client_count(clients, task.train.size(), task.test.size()),
                        .seed = seed,
                        .part = 1});
  }
  number_clients(task.test, "test-");
}

}  // namespace

void add_image(ImagePart& part, std::string_view client, std::span<const std::uint8_t> pixels,
               std::int32_t label) {
  // Examples of one client mostly come one after another.
  std::size_t place = part.ids.size();
  if (!part.ids.empty() && part.ids.back() == client) {
    place = part.ids.size() - 1;
  } else {
    place = std::size_t(std::find(part.ids.begin(), part.ids.end(), client) - part.ids.begin());
  }
  if (place == part.ids.size()) {
    part.ids.emplace_back(client);
    part.examples.emplace_back();
  }
  part.examples[place].push_back(std::uint32_t(part.labels.size()));
  part.pixels.insert(part.pixels.end(), pixels.begin(), pixels.end());
  part.labels.push_back(label);
}

std::optional<std::uint8_t> pixel_byte(double value) {
  if (!(value >= 0.0 && value <= 1.0)) return std::nullopt;
  return std::uint8_t(std::lround(value * 255.0));
}

DatasetInfo emnist_info(std::string name) {
  DatasetInfo info;
  info.name = std::move(name);
  info.features = {28, 28, 1};
  info.outputs = std::size_t(kEmnistClasses);
  for (char c = '0'; c <= '9'; ++c) info.output_names.emplace_back(1, c);
  for (char c = 'A'; c <= 'Z'; ++c) info.output_names.emplace_back(1, c);
  for (char c = 'a'; c <= 'z'; ++c) info.output_names.emplace_back(1, c);
  return info;
}

std::unique_ptr<Dataset> make_image_dataset(ImageTask task, const DataSettings& settings,
                                            std::uint64_t seed,
                                            const std::filesystem::path& folder) {
  const PartitionKind& kind = find_partition(settings.partition);
  if (task.train.size() == 0) {
    throw InputError(fmt::format("{}: {} must have training examples, but has none", task.info.name,
                                 folder.string()));
  }
  if (kind.natural() && !task.train.ids.empty()) {
    partition_naturally(task, settings);
  } else {
    partition_anew(task, settings, seed, folder);
  }
  check_clients_left(task.info.name, task.train.ids.size(), settings);
  return std::make_unique<ImageDataset>(std::move(task));
}

}  // namespace fedep
