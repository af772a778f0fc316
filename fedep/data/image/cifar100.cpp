#include "fedep/data/image/cifar100.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <optional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <xxhash.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/image_augment.h"
#include "fedep/data/image/pca.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "cifar100";
constexpr std::size_t kImage = 32 * 32 * 3;
constexpr std::size_t kRecord = 2 + kImage;
constexpr std::size_t kFine = 100;
// Coarse label of each fine one, as Krizhevsky (2009) groups them; a record that disagrees is bad.
constexpr std::array<std::uint8_t, kFine> kCoarseOf{
    4,  1,  14, 8,  0,  6,  7,  7,  18, 3,  3,  14, 9,  18, 7,  11, 3,  9,  7,  11,
    6,  11, 5,  10, 7,  6,  13, 15, 3,  15, 0,  11, 1,  10, 12, 14, 16, 9,  11, 5,
    5,  19, 8,  8,  15, 13, 14, 17, 18, 10, 16, 4,  17, 4,  2,  0,  17, 4,  18, 17,
    10, 3,  2,  12, 12, 16, 12, 1,  9,  19, 2,  10, 0,  1,  16, 12, 9,  13, 15, 13,
    16, 19, 2,  4,  6,  19, 5,  5,  8,  19, 18, 1,  2,  15, 6,  0,  17, 8,  14, 13};

struct CifarPart {
  std::vector<std::uint8_t> pixels;  // [examples, 32, 32, 3]
  std::vector<std::int32_t> labels;
  std::vector<std::uint32_t> place;  // of a record of the file among the examples, or kLeftOut
  Partition clients;                 // places among the examples

  std::span<const std::uint8_t> image(std::size_t example) const {
    return std::span(pixels).subspan(example * kImage, kImage);
  }
};

CifarPart read_part(const fs::path& path, std::size_t count, std::size_t& skipped) {
  const std::vector<std::uint8_t> bytes = read_data_file(kName, path);
  check_data_size(kName, path, bytes.size(), count * kRecord);
  CifarPart part;
  part.pixels.resize(count * kImage);
  part.place.assign(count, kLeftOut);
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint8_t* const record = bytes.data() + i * kRecord;
    if (record[1] >= kFine || record[0] != kCoarseOf[record[1]]) {
      ++skipped;
      continue;
    }
    const std::size_t example = part.labels.size();
    interleave(kCifarCrop, {record + 2, kImage},
               std::span(part.pixels).subspan(example * kImage, kImage));
    part.place[i] = std::uint32_t(example);
    part.labels.push_back(record[1]);
  }
  part.pixels.resize(part.labels.size() * kImage);
  return part;
}

Partition clients_of(const CifarPart& part, const fs::path& index_file,
                     const DataSettings& settings, const PartitionPlan& plan) {
  std::vector<std::int32_t> coarse;
  for (const std::int32_t label : part.labels) coarse.push_back(kCoarseOf[std::size_t(label)]);
  return make_partition(settings,
                        {.dataset = kName,
                         .labels = part.labels,
                         .coarse = coarse,
                         .index_file = index_file,
                         .places = part.place},
                        plan);
}

std::vector<std::string> read_names(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  std::istringstream in(read_data_text(kName, path));
  std::vector<std::string> names;
  for (std::string name; in >> name;) names.push_back(name);
  if (names.size() != kFine) {
    throw InputError(fmt::format("{}: {} must have {} names, but has {}", kName, path.string(),
                                 kFine, names.size()));
  }
  return names;
}

class Cifar100 final : public Dataset {
 public:
  Cifar100(const DataSettings& settings, std::uint64_t seed, const fs::path& folder,
           const Cifar100Counts& counts)
      : augment_(settings.augment) {
    find_partition(settings.partition);  // before anything is read
    info_.name = kName;
    info_.features = {24, 24, 3};
    info_.outputs = kFine;
    info_.output_names = read_names(folder / "fine_label_names.txt");
    train_ = read_part(folder / "train.bin", counts.train, info_.skipped_records);
    test_ = read_part(folder / "test.bin", counts.test, info_.skipped_records);
    const std::size_t clients = std::size_t(std::max(settings.clients, 0));
    train_.clients = clients_of(train_, folder / "pam_train.i32", settings,
                                {.clients = clients, .seed = seed, .part = 0});
    test_.clients = clients_of(
        test_, folder / "pam_test.i32", settings,
        {.clients = test_client_count(clients, train_.labels.size(), test_.labels.size()),
         .seed = seed,
         .part = 1});
    for (const std::size_t c : limit_clients(train_.clients, settings)) {
      clients_.emplace_back(std::to_string(c), train_.clients[clients_.size()].size());
    }
    check_clients_left(kName, clients_.size(), settings);
    for (std::size_t c = 0; c < test_.clients.size(); ++c) {
      test_clients_.push_back(fmt::format("test-{}", c));
      for (const std::uint32_t example : test_.clients[c]) {
        test_order_.push_back(example);
        test_client_.push_back(std::uint32_t(c));
      }
    }
  }

  // From here on batches are features of these images.
  void use_pca(const Pca& pca) {
    projection_.emplace(pca);
    info_.name = "cifar100_pca";
    info_.features = {std::int64_t(pca.components)};
  }

  const CifarPart& train() const { return train_; }

  const DatasetInfo& info() const override { return info_; }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }

  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    const std::vector<std::uint32_t>& own = train_.clients.at(client);
    const std::optional<Stream> stream =
        augment_ && augmentation ? std::optional<Stream>(*augmentation) : std::nullopt;
    fill(examples.size(), out, [&](std::size_t i, std::span<float> image) {
      const std::size_t example = own.at(examples[i]);
      const Crop crop =
          stream ? random_crop(kCifarCrop, *stream, examples[i]) : centre_crop(kCifarCrop);
      standardised_crop(kCifarCrop, train_.image(example), crop, image);
      return train_.labels[example];
    });
  }

  std::optional<RawImages> raw_images() const override {
    return RawImages{.pixels = train_.pixels,
                     .labels = train_.labels,
                     .clients = train_.clients,
                     .crop = kCifarCrop,
                     .random_crops = augment_,
                     .projection = projection_ ? &*projection_ : nullptr};
  }

  std::size_t test_size() const override { return test_order_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    check_in("test_batch", "end", double(end), double(begin), double(test_size()));
    fill(end - begin, out, [&](std::size_t i, std::span<float> image) {
      const std::size_t example = test_order_[begin + i];
      standardised_crop(kCifarCrop, test_.image(example), centre_crop(kCifarCrop), image);
      return test_.labels[example];
    });
  }
  const std::vector<std::string>& test_clients() const override { return test_clients_; }
  std::size_t test_client(std::size_t example) const override { return test_client_.at(example); }

 private:
  // `make(i, image)` writes the i-th image and returns its label.
  template <class Make>
  void fill(std::size_t size, Batch& out, const Make& make) const {
    const std::size_t pixels = kCifarCrop.crop_size();
    out.size = size;
    out.labels.resize(size);
    out.dense.resize(size * info_.feature_count());
    const std::span<float> dense(out.dense);
    if (!projection_) {
      for (std::size_t i = 0; i < size; ++i) {
        out.labels[i] = make(i, dense.subspan(i * pixels, pixels));
      }
      return;
    }
    // Some images at a time, which stay in the second-level cache until they are projected.
    constexpr std::size_t kBlock = 20;
    const std::size_t components = projection_->components();
    std::vector<float> images(std::min(kBlock, size) * pixels);
    for (std::size_t begin = 0; begin < size; begin += kBlock) {
      const std::size_t count = std::min(kBlock, size - begin);
      for (std::size_t i = 0; i < count; ++i) {
        out.labels[begin + i] = make(begin + i, std::span(images).subspan(i * pixels, pixels));
      }
      (*projection_)(std::span(images).first(count * pixels),
                     dense.subspan(begin * components, count * components));
    }
  }

  bool augment_;
  DatasetInfo info_;
  CifarPart train_;
  CifarPart test_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::string> test_clients_;
  std::vector<std::uint32_t> test_order_;
  std::vector<std::uint32_t> test_client_;
  std::optional<PcaProjection> projection_;
};

Pca fit_centre_crops(const CifarPart& train) {
  const std::size_t pixels = kCifarCrop.crop_size();
  return fit_pca(train.labels.size(), pixels, kCifarPcaComponents,
                 [&](std::size_t begin, std::span<float> rows) {
                   for (std::size_t i = 0; i < rows.size() / pixels; ++i) {
                     standardised_crop(kCifarCrop, train.image(begin + i), centre_crop(kCifarCrop),
                                       rows.subspan(i * pixels, pixels));
                   }
                 });
}

Pca cached_pca(const CifarPart& train, const fs::path& folder) {
  const char* const given = std::getenv("FEDEP_CACHE");
  const fs::path cache = given && *given ? fs::path(given) : folder;
  const std::uint64_t hash = XXH3_64bits(train.pixels.data(), train.pixels.size());
  const fs::path path =
      cache / fmt::format("cifar100_pca{}_{:016x}.record", kCifarPcaComponents, hash);
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    try {
      Pca pca = load_pca(path);
      if (pca.features == kCifarCrop.crop_size() && pca.components == kCifarPcaComponents) {
        return pca;
      }
    } catch (const InputError&) {
      // A broken copy is made anew.
    }
  }
  Pca pca = fit_centre_crops(train);
  fs::create_directories(cache, ignored);
  try {
    save_pca(pca, path);
  } catch (const RunError&) {
    // A folder that cannot be written costs the next run a fit, nothing else.
  }
  return pca;
}

}  // namespace

std::unique_ptr<Dataset> open_cifar100(const DataSettings& settings, std::uint64_t seed,
                                       const fs::path& folder) {
  return open_cifar100(settings, seed, folder, Cifar100Counts{});
}

std::unique_ptr<Dataset> open_cifar100(const DataSettings& settings, std::uint64_t seed,
                                       const fs::path& folder, const Cifar100Counts& counts) {
  return std::make_unique<Cifar100>(settings, seed, folder / settings.path, counts);
}

std::unique_ptr<Dataset> open_cifar100_pca(const DataSettings& settings, std::uint64_t seed,
                                           const fs::path& folder) {
  return open_cifar100_pca(settings, seed, folder, Cifar100Counts{});
}

std::unique_ptr<Dataset> open_cifar100_pca(const DataSettings& settings, std::uint64_t seed,
                                           const fs::path& folder, const Cifar100Counts& counts) {
  const fs::path here = folder / settings.path;
  auto dataset = std::make_unique<Cifar100>(settings, seed, here, counts);
  dataset->use_pca(cached_pca(dataset->train(), here));
  return dataset;
}

}  // namespace fedep
