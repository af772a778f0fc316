#include "fedep/data/kept_clients.h"

#include <algorithm>

#include <fmt/format.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

constexpr std::uint32_t kStep = 1;  // partitions draw at step 0 of the same purpose

// In the data set's order.
std::vector<std::size_t> drawn(const Dataset& data, std::size_t count, std::uint64_t seed) {
  std::vector<std::pair<std::uint64_t, std::size_t>> lots;
  for (std::size_t c = 0; c < data.clients().size(); ++c) {
    Stream stream({.seed = seed,
                   .purpose = Purpose::partition,
                   .client = client_key(data.clients()[c].first),
                   .step = kStep});
    lots.emplace_back(stream.bits64(), c);
  }
  std::ranges::sort(lots);
  std::vector<std::size_t> kept;
  for (std::size_t i = 0; i < count; ++i) kept.push_back(lots[i].second);
  std::ranges::sort(kept);
  return kept;
}

class KeptClients final : public Dataset {
 public:
  KeptClients(std::unique_ptr<Dataset> data, std::vector<std::size_t> kept)
      : data_(std::move(data)), kept_(std::move(kept)) {
    const std::optional<RawImages> raw = data_->raw_images();
    for (const std::size_t c : kept_) {
      clients_.push_back(data_->clients()[c]);
      if (!raw) continue;
      images_.push_back(raw->clients[c]);
      if (!raw->numbers.empty()) numbers_.push_back(raw->numbers[c]);
    }
  }

  const DatasetInfo& info() const override { return data_->info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  std::span<const std::uint32_t> groups(std::size_t client) const override {
    return data_->groups(kept_.at(client));
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    data_->train_batch(kept_.at(client), examples, augmentation, out);
  }
  std::optional<RawImages> raw_images() const override {
    std::optional<RawImages> raw = data_->raw_images();
    if (!raw) return std::nullopt;
    raw->clients = images_;
    raw->numbers = numbers_;
    return raw;
  }
  std::size_t test_size() const override { return data_->test_size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    data_->test_batch(begin, end, out);
  }
  const std::vector<std::string>& test_clients() const override { return data_->test_clients(); }
  std::size_t test_client(std::size_t example) const override {
    return data_->test_client(example);
  }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::size_t> kept_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::vector<std::uint32_t>> images_, numbers_;  // where there are raw images
};

}  // namespace

std::unique_ptr<Dataset> kept_clients(std::unique_ptr<Dataset> data, std::size_t count,
                                      std::uint64_t seed) {
  const std::size_t there = data->clients().size();
  if (count > there) {
    throw InputError(
        fmt::format("data.keep_clients must be at most the {} clients that there are, but is {}",
                    there, count));
  }
  std::vector<std::size_t> kept = drawn(*data, count, seed);
  return std::make_unique<KeptClients>(std::move(data), std::move(kept));
}

}  // namespace fedep
