#include "fedep/data/unseen_classes.h"

#include <algorithm>
#include <charconv>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/append_batch.h"
#include "fedep/data/training_rows.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

constexpr std::int32_t kUnseen = -1;
constexpr std::size_t kChunk = 1000;  // examples in memory at a time

std::size_t class_of(const DatasetInfo& info, const std::string& name) {
  const auto found = std::find(info.output_names.begin(), info.output_names.end(), name);
  if (found != info.output_names.end()) return std::size_t(found - info.output_names.begin());
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error == std::errc() && end == name.data() + name.size() && number < info.outputs) {
    return number;
  }
  const std::vector<std::string_view> names(info.output_names.begin(), info.output_names.end());
  throw InputError(fmt::format("data.unseen_classes must be {}numbers from 0 to {}, but has {}{}",
                               names.empty() ? "" : "names of classes or ", info.outputs - 1,
                               shown(name), suggestion(name, names)));
}

// New number of each class, or kUnseen.
std::vector<std::int32_t> renumbered(const DatasetInfo& info,
                                     const std::vector<std::string>& classes) {
  if (info.target != TargetKind::label || info.table) {
    throw InputError(
        fmt::format("data.unseen_classes must be empty for {}: only images and other examples with "
                    "one of several "
                    "classes, which are no table, can have such",
                    info.name));
  }
  std::vector<std::int32_t> out(info.outputs, 0);
  for (const std::string& name : classes) out[class_of(info, name)] = kUnseen;
  std::int32_t next = 0;
  for (std::int32_t& number : out) {
    if (number != kUnseen) number = next++;
  }
  if (next < 2) {
    throw InputError(
        fmt::format("data.unseen_classes must leave two of the {} classes or more, but leaves {}",
                    info.outputs, next));
  }
  return out;
}

void renumber(const std::vector<std::int32_t>& numbers, std::vector<std::int32_t>& labels) {
  for (std::int32_t& label : labels) label = numbers[std::size_t(label)];
}

// Labels of a client's training examples; images need not be made for that.
std::vector<std::int32_t> training_labels(const Dataset& data, const std::optional<RawImages>& raw,
                                          std::size_t client) {
  std::vector<std::int32_t> labels;
  if (raw) {
    for (const std::uint32_t image : raw->clients[client]) labels.push_back(raw->labels[image]);
    return labels;
  }
  const std::size_t count = data.clients()[client].second;
  std::vector<std::uint32_t> examples;
  Batch batch;
  for (std::size_t begin = 0; begin < count; begin += kChunk) {
    examples.resize(std::min(kChunk, count - begin));
    std::iota(examples.begin(), examples.end(), std::uint32_t(begin));
    data.train_batch(client, examples, nullptr, batch);
    labels.insert(labels.end(), batch.labels.begin(), batch.labels.end());
  }
  return labels;
}

// Some of a data set's held-out examples.
class TestRows {
 public:
  TestRows(const Dataset& data, std::vector<std::size_t> rows)
      : data_(data), rows_(std::move(rows)) {}

  std::size_t size() const { return rows_.size(); }
  std::size_t client(std::size_t example) const { return data_.test_client(rows_.at(example)); }
  // Neighbours are fetched together.
  void batch(std::size_t begin, std::size_t end, Batch& out) const {
    out = {};
    Batch part;
    while (begin < end) {
      std::size_t until = begin + 1;
      while (until < end && rows_[until] == rows_[until - 1] + 1) ++until;
      data_.test_batch(rows_[begin], rows_[until - 1] + 1, part);
      append(part, out);
      begin = until;
    }
  }

 private:
  const Dataset& data_;
  std::vector<std::size_t> rows_;
};

struct TestSplit {
  std::vector<std::size_t> seen, unseen;
};

TestSplit split_test(const Dataset& data, const std::vector<std::int32_t>& numbers) {
  TestSplit split;
  Batch batch;
  for (std::size_t begin = 0; begin < data.test_size(); begin += kChunk) {
    data.test_batch(begin, std::min(begin + kChunk, data.test_size()), batch);
    for (std::size_t i = 0; i < batch.size; ++i) {
      const bool unseen = numbers[std::size_t(batch.labels[i])] == kUnseen;
      (unseen ? split.unseen : split.seen).push_back(begin + i);
    }
  }
  return split;
}

// Held-out examples of unseen classes; nobody's to train on.
class UnlikeExamples final : public Dataset {
 public:
  UnlikeExamples(const Dataset& data, const DatasetInfo& info, std::vector<std::size_t> rows)
      : data_(data), info_(info), rows_(data, std::move(rows)) {}

  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  void train_batch(std::size_t, std::span<const std::uint32_t>, const Address*,
                   Batch& out) const override {
    out = {};
  }
  std::size_t test_size() const override { return rows_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    rows_.batch(begin, end, out);
    out.labels.clear();  // no output is theirs
  }
  const std::vector<std::string>& test_clients() const override { return data_.test_clients(); }
  std::size_t test_client(std::size_t example) const override { return rows_.client(example); }

 private:
  const Dataset& data_;
  const DatasetInfo& info_;
  TestRows rows_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
};

class SeenClasses final : public TrainingRows {
 public:
  SeenClasses(std::unique_ptr<Dataset> data, std::vector<std::int32_t> numbers,
              std::vector<std::vector<std::uint32_t>> rows, std::vector<std::size_t> clients,
              const TestSplit& test)
      : TrainingRows(std::move(data), std::move(rows), std::move(clients)),
        numbers_(std::move(numbers)),
        info_(all().info()),
        seen_(all(), test.seen),
        unlike_(all(), info_, test.unseen) {
    info_.outputs = 0;
    info_.output_names.clear();
    for (std::size_t c = 0; c < numbers_.size(); ++c) {
      if (numbers_[c] == kUnseen) continue;
      ++info_.outputs;
      const std::vector<std::string>& names = all().info().output_names;
      info_.output_names.push_back(c < names.size() ? names[c] : std::to_string(c));
    }
    if (const std::optional<RawImages> raw = all().raw_images()) {
      labels_.assign(raw->labels.begin(), raw->labels.end());
      renumber(numbers_, labels_);
    }
  }

  const DatasetInfo& info() const override { return info_; }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    TrainingRows::train_batch(client, examples, augmentation, out);
    renumber(numbers_, out.labels);
  }
  std::optional<RawImages> raw_images() const override {
    std::optional<RawImages> raw = TrainingRows::raw_images();
    if (raw) raw->labels = labels_;
    return raw;
  }
  std::size_t test_size() const override { return seen_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    seen_.batch(begin, end, out);
    renumber(numbers_, out.labels);
  }
  const std::vector<std::string>& test_clients() const override { return all().test_clients(); }
  std::size_t test_client(std::size_t example) const override { return seen_.client(example); }
  const Dataset* unlike() const override { return &unlike_; }

 private:
  std::vector<std::int32_t> numbers_;
  DatasetInfo info_;
  std::vector<std::int32_t> labels_;  // of raw images, where there are any
  TestRows seen_;
  UnlikeExamples unlike_;
};

}  // namespace

std::unique_ptr<Dataset> without_classes(std::unique_ptr<Dataset> data,
                                         const std::vector<std::string>& classes,
                                         int min_examples) {
  std::vector<std::int32_t> numbers = renumbered(data->info(), classes);
  const std::optional<RawImages> raw = data->raw_images();
  std::vector<std::vector<std::uint32_t>> rows;
  std::vector<std::size_t> clients;
  for (std::size_t c = 0; c < data->clients().size(); ++c) {
    const std::vector<std::int32_t> labels = training_labels(*data, raw, c);
    std::vector<std::uint32_t> seen;
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (numbers[std::size_t(labels[i])] != kUnseen) seen.push_back(std::uint32_t(i));
    }
    if (seen.empty() || seen.size() < std::size_t(std::max(0, min_examples))) continue;
    rows.push_back(std::move(seen));
    clients.push_back(c);
  }
  if (clients.empty()) {
    throw InputError(
        "data.unseen_classes must leave examples to train on, but no client has enough of others");
  }
  const TestSplit test = split_test(*data, numbers);
  return std::make_unique<SeenClasses>(std::move(data), std::move(numbers), std::move(rows),
                                       std::move(clients), test);
}

}  // namespace fedep
