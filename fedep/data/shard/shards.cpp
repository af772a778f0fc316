#include "fedep/data/shard/shards.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/append_batch.h"
#include "fedep/data/data_file.h"
#include "fedep/data/fingerprint.h"
#include "fedep/data/image/cropped_dataset.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/shard/shard.h"
#include "fedep/data/shard/shard_manifest.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "shards";

// "000007-ward-C.shard": unique by its number, readable by what a file's name may hold of the id.
std::string file_name(std::size_t number, const std::string& client) {
  std::string readable;
  for (const char c : client.substr(0, 40)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_';
    readable += plain ? c : '_';
  }
  return fmt::format("{:06}-{}.shard", number, readable);
}

void write_file(const fs::path& path, std::span<const std::byte> bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(bytes.data()), std::streamsize(bytes.size()));
  out.close();
  if (!out) throw RunError(fmt::format("{}: cannot write", path.string()));
}

void make_folder(const fs::path& folder) {
  std::error_code error;
  if (fs::exists(folder, error) &&
      !(fs::is_directory(folder, error) && fs::is_empty(folder, error))) {
    throw InputError(
        fmt::format("{}: folder for shards must be new or empty, but is not", folder.string()));
  }
  fs::create_directories(folder, error);
  if (error) {
    throw RunError(fmt::format("{}: cannot make directory: {}", folder.string(), error.message()));
  }
}

// Where each test client's examples lie: they come client after client.
std::vector<std::pair<std::size_t, std::size_t>> test_ranges(const Dataset& data) {
  std::vector<std::pair<std::size_t, std::size_t>> ranges(data.test_clients().size());
  for (std::size_t i = 0; i < data.test_size(); ++i) {
    auto& [begin, end] = ranges[data.test_client(i)];
    if (begin == end) begin = i;
    end = i + 1;
  }
  return ranges;
}

// Crops that are cut anew every time need the whole images; a projection of centre crops does not.
bool keeps_images(const std::optional<RawImages>& raw) {
  return raw && raw->crop && (raw->projection == nullptr || raw->random_crops);
}

ShardImages images_of(const RawImages& raw, std::size_t client,
                      const std::shared_ptr<const PcaProjection>& projection) {
  ShardImages images{.crop = *raw.crop, .pixels = {}, .labels = {}, .projection = projection};
  const std::size_t pixels = raw.crop->image_size();
  for (const std::uint32_t image : raw.clients[client]) {
    const auto stored = raw.pixels.subspan(image * pixels, pixels);
    images.pixels.insert(images.pixels.end(), stored.begin(), stored.end());
    images.labels.push_back(raw.labels[image]);
  }
  return images;
}

// What is read of a folder, client after client.
struct Assembly {
  Shard kind;  // the first one's, without its examples
  ClientRows train_clients;
  Batch train;
  std::vector<std::uint32_t> groups;    // of train, where there are any
  std::optional<CroppedImages> images;  // instead of train
  ClientRows test_clients;
  Batch test;
};

bool same(const PcaProjection* a, const PcaProjection* b) {
  if (a == nullptr || b == nullptr) return a == b;
  return std::ranges::equal(a->panels(), b->panels()) &&
         std::ranges::equal(a->offset(), b->offset());
}

void check_kind(const Assembly& all, const Shard& shard, const std::string& source) {
  const bool is_same =
      shard.about == all.kind.about && shard.images.has_value() == all.images.has_value() &&
      (!shard.images || (shard.images->crop.side == all.images->crop.side &&
                         shard.images->crop.crop_side == all.images->crop.crop_side &&
                         same(shard.images->projection.get(), all.images->projection.get())));
  if (!is_same) {
    throw InputError(
        fmt::format("{}: shard must be of the data set that the first one is of, but "
                    "is of another",
                    source));
  }
}

void begin(Assembly& all, const Shard& first) {
  all.kind = {.client = {}, .info = first.info, .about = first.about};
  if (!first.images) return;
  all.images = CroppedImages{.crop = first.images->crop};
  all.images->projection = first.images->projection;
}

// Whether `more` can go behind `all`.
void check_fits(const SparseRows& all, const SparseRows& more, const std::string& source) {
  constexpr std::size_t kMost = std::numeric_limits<std::uint32_t>::max();
  const bool both = !all.columns.empty() && !more.columns.empty();
  if (both && all.values.empty() != more.values.empty()) {
    throw InputError(fmt::format(
        "{}: words must have weights in all shards or in none, but have them in some", source));
  }
  if (all.columns.size() + more.columns.size() > kMost) {
    throw InputError(fmt::format("{}: shards must have at most {} words together, but have more",
                                 source, kMost));
  }
}

void add_train(Assembly& all, const Shard& shard, const std::string& source) {
  if (all.images) {
    all.images->clients.add(shard.client, shard.train_size());
    const ShardImages& own = *shard.images;
    all.images->pixels.insert(all.images->pixels.end(), own.pixels.begin(), own.pixels.end());
    all.images->labels.insert(all.images->labels.end(), own.labels.begin(), own.labels.end());
    return;
  }
  check_fits(all.train.sparse, shard.train.sparse, source);
  all.train_clients.add(shard.client, shard.train.size);
  append(shard.train, all.train);
  const bool first = all.train_clients.ids.size() == 1;
  if (!first && shard.groups.empty() != all.groups.empty()) {
    throw InputError(fmt::format(
        "{}: examples must have groups in all shards or in none, but have them in some", source));
  }
  all.groups.insert(all.groups.end(), shard.groups.begin(), shard.groups.end());
}

void add_test(Assembly& all, const Shard& shard, const std::string& source) {
  check_fits(all.test.sparse, shard.test.sparse, source);
  all.test_clients.add(shard.client, shard.test.size);
  append(shard.test, all.test);
}

std::unique_ptr<Dataset> finish(Assembly all, bool augment) {
  Part test{std::move(all.test_clients), batch_rows(std::move(all.test))};
  if (all.images) {
    return cropped_dataset(std::move(all.kind.info), *std::move(all.images), std::move(test),
                           augment);
  }
  return memory_dataset(
      std::move(all.kind.info),
      {std::move(all.train_clients), batch_rows(std::move(all.train)), std::move(all.groups)},
      std::move(test));
}

std::unique_ptr<Dataset> open_one(const fs::path& path, bool augment) {
  const std::vector<std::uint8_t> bytes = read_data_file(kName, path);
  const Shard shard = parse_shard(std::as_bytes(std::span(bytes)), path.string());
  if (shard.train_size() == 0) {
    throw InputError(fmt::format(
        "{}: a shard alone must have training examples, but client {} has only held-out ones",
        path.string(), shown(shard.client)));
  }
  Assembly all;
  begin(all, shard);
  add_train(all, shard, path.string());
  if (shard.test.size > 0) add_test(all, shard, path.string());
  return finish(std::move(all), augment);
}

Shard read_entry(const fs::path& folder, const ShardEntry& entry, const Shard& known) {
  const fs::path path = folder / entry.file;
  const std::vector<std::uint8_t> bytes = read_data_file(kName, path);
  check_data_size(kName, path, bytes.size(), entry.bytes);
  const auto view = std::as_bytes(std::span(bytes));
  Shard shard = parse_shard(view, path.string(), &known);
  const bool is_named = shard.client == entry.client && shard.train_size() == entry.train &&
                        shard.test.size == entry.test && fingerprint(view) == entry.checksum;
  if (!is_named) {
    throw InputError(
        fmt::format("{}: client, counts and checksum must be the manifest's, but "
                    "differ",
                    path.string()));
  }
  return shard;
}

std::unique_ptr<Dataset> open_folder(const fs::path& folder, bool augment) {
  const ShardManifest manifest = read_manifest(folder);
  Assembly all;
  std::map<std::size_t, Shard> waiting;  // held-out parts, until it is their turn
  const std::set<std::size_t> test_clients(manifest.test_order.begin(), manifest.test_order.end());
  std::size_t next_test = 0;
  for (std::size_t i = 0; i < manifest.shards.size(); ++i) {
    const ShardEntry& entry = manifest.shards[i];
    const std::string source = (folder / entry.file).string();
    Shard shard = read_entry(folder, entry, all.kind);
    if (i == 0) begin(all, shard);
    check_kind(all, shard, source);
    if (entry.train > 0) add_train(all, shard, source);
    shard.train = {};
    shard.images.reset();
    if (test_clients.contains(i)) waiting.emplace(i, std::move(shard));
    while (next_test < manifest.test_order.size()) {
      const auto found = waiting.find(manifest.test_order[next_test]);
      if (found == waiting.end()) break;
      add_test(all, found->second, (folder / manifest.shards[found->first].file).string());
      waiting.erase(found);
      ++next_test;
    }
  }
  return finish(std::move(all), augment);
}

}  // namespace

ShardTotals write_shards(const Dataset& data, std::uint64_t seed, const fs::path& folder) {
  make_folder(folder);
  const auto ranges = test_ranges(data);
  std::map<std::string, std::size_t> test_place;
  for (std::size_t t = 0; t < ranges.size(); ++t) test_place[data.test_clients()[t]] = t;
  const std::optional<RawImages> raw = data.raw_images();
  std::shared_ptr<const PcaProjection> projection;
  if (raw && raw->projection) projection = std::make_shared<const PcaProjection>(*raw->projection);

  const std::string about = about_data(data.info());
  ShardTotals totals;
  ShardManifest manifest{.data = data.info().name, .seed = seed};
  manifest.test_order.resize(ranges.size());
  const auto write = [&](const Shard& shard) {
    const std::vector<std::byte> bytes = shard_bytes(shard);
    manifest.shards.push_back({.file = file_name(totals.files, shard.client),
                               .client = shard.client,
                               .train = shard.train_size(),
                               .test = shard.test.size,
                               .bytes = bytes.size(),
                               .checksum = fingerprint(std::span(bytes))});
    write_file(folder / manifest.shards.back().file, bytes);
    totals.train += shard.train_size();
    totals.test += shard.test.size;
    totals.bytes += bytes.size();
    ++totals.files;
  };
  const auto take_test = [&](std::size_t place, Shard& shard) {
    manifest.test_order[place] = totals.files;
    const auto [first, last] = ranges[place];
    data.test_batch(first, last, shard.test);
  };

  for (std::size_t k = 0; k < data.clients().size(); ++k) {
    const auto& [id, count] = data.clients()[k];
    Shard shard{.client = id, .info = data.info(), .about = about};
    if (keeps_images(raw)) {
      shard.images = images_of(*raw, k, projection);
    } else {
      std::vector<std::uint32_t> examples(count);
      std::iota(examples.begin(), examples.end(), 0u);
      data.train_batch(k, examples, nullptr, shard.train);
      const std::span<const std::uint32_t> groups = data.groups(k);
      shard.groups.assign(groups.begin(), groups.end());
    }
    if (const auto found = test_place.find(id); found != test_place.end()) {
      take_test(found->second, shard);
      test_place.erase(found);
    }
    write(shard);
  }
  for (std::size_t t = 0; t < ranges.size(); ++t) {
    const std::string& id = data.test_clients()[t];
    if (!test_place.contains(id)) continue;
    Shard shard{.client = id, .info = data.info(), .about = about};
    if (keeps_images(raw)) shard.images = ShardImages{.crop = *raw->crop, .projection = projection};
    take_test(t, shard);
    write(shard);
  }

  manifest.fingerprint = fingerprint(data);
  write_manifest(folder, manifest);
  return totals;
}

std::unique_ptr<Dataset> open_shards(const DataSettings& settings, std::uint64_t,
                                     const fs::path& folder) {
  const fs::path path = folder / settings.path;
  std::error_code error;
  return fs::is_directory(path, error) ? open_folder(path, settings.augment)
                                       : open_one(path, settings.augment);
}

}  // namespace fedep
