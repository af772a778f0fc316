#include "fedep/data/fingerprint.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <type_traits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace fedep {
namespace {

constexpr std::size_t kChunk = 1000;           // examples in memory at a time
constexpr std::size_t kClientsLookedAt = 100;  // of data that are made when asked for

class Hash {
 public:
  Hash() { XXH3_64bits_reset(&state_); }

  // A list is its length and its elements, so that two lists never read as one.
  template <class T>
  requires std::is_arithmetic_v<T>
  void add(std::span<const T> values) {
    const std::uint64_t count = values.size();
    XXH3_64bits_update(&state_, &count, sizeof count);
    XXH3_64bits_update(&state_, values.data(), values.size_bytes());
  }
  void add(std::uint64_t number) { add(std::span<const std::uint64_t>(&number, 1)); }
  void add(std::string_view text) { add(std::span(text)); }
  void add(const SparseRows& rows) {
    add(std::span(rows.offsets));
    add(std::span(rows.columns));
    add(std::span(rows.values));
  }
  void add(const Batch& batch) {
    add(std::span(batch.dense));
    add(batch.sparse);
    add(std::span(batch.labels));
    add(batch.tags);
    add(std::span(batch.reals));
    if (!batch.log_exposure.empty()) add(std::span(batch.log_exposure));
  }
  template <class T>
  void add(std::span<T> values) {
    add(std::span<const std::remove_const_t<T>>(values));
  }

  std::uint64_t value() const { return XXH3_64bits_digest(&state_); }

 private:
  XXH3_state_t state_;
};

}  // namespace

std::uint64_t fingerprint(const Dataset& data) {
  Hash hash;
  const DatasetInfo& info = data.info();
  hash.add(std::span(info.features));
  hash.add(std::uint64_t(info.sparse));
  hash.add(std::uint64_t(info.target));
  hash.add(info.outputs);

  Batch batch;
  std::vector<std::uint32_t> examples;
  const std::size_t clients = data.clients().size();
  const std::size_t stride = data.made_when_asked() ? clients / kClientsLookedAt + 1 : 1;
  for (std::size_t client = 0; client < clients; ++client) {
    const auto& [id, count] = data.clients()[client];
    hash.add(std::string_view(id));
    hash.add(count);
    if (client % stride != 0) continue;
    for (std::size_t begin = 0; begin < count; begin += kChunk) {
      examples.resize(std::min(kChunk, count - begin));
      std::iota(examples.begin(), examples.end(), std::uint32_t(begin));
      data.train_batch(client, examples, nullptr, batch);
      hash.add(batch);
    }
  }
  // Centre crops do not show the borders that random ones do. Projections of centre crops are all
  // that anybody keeps of their images.
  const auto raw = data.raw_images();
  if (raw && raw->crop && (raw->random_crops || raw->projection == nullptr)) {
    const std::size_t pixels = raw->crop->image_size();
    for (const std::vector<std::uint32_t>& images : raw->clients) {
      for (const std::uint32_t image : images)
        hash.add(raw->pixels.subspan(image * pixels, pixels));
    }
  }

  for (const std::string& id : data.test_clients()) hash.add(std::string_view(id));
  for (std::size_t begin = 0; begin < data.test_size(); begin += kChunk) {
    const std::size_t end = std::min(begin + kChunk, data.test_size());
    data.test_batch(begin, end, batch);
    hash.add(batch);
    for (std::size_t i = begin; i < end; ++i) hash.add(data.test_client(i));
  }
  return hash.value();
}

std::uint64_t fingerprint(std::span<const std::byte> bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

}  // namespace fedep
