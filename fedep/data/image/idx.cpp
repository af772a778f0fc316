#include "fedep/data/image/idx.h"

#include <algorithm>
#include <initializer_list>
#include <string>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/image_dataset.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "idx";
constexpr std::uint8_t kUnsignedByte = 8;

[[noreturn]] void refuse(std::string_view dataset, const fs::path& path, std::string_view expected,
                         const std::string& came) {
  throw InputError(fmt::format("{}: {} must {}, but {}", dataset, path.string(), expected, came));
}

std::size_t big_u32(const std::uint8_t* bytes) {
  return std::size_t(bytes[0]) << 24 | std::size_t(bytes[1]) << 16 | std::size_t(bytes[2]) << 8 |
         std::size_t(bytes[3]);
}

// The one file in the folder whose name ends in one of these, `.gz` aside.
fs::path find_ending(const fs::path& folder, std::initializer_list<std::string_view> endings) {
  std::vector<fs::path> found;
  for (const fs::path& path : files_in(kName, folder)) {
    std::string name = path.filename().string();
    if (name.ends_with(".gz")) name.resize(name.size() - 3);
    if (std::any_of(endings.begin(), endings.end(),
                    [&](std::string_view ending) { return name.ends_with(ending); })) {
      found.push_back(path);
    }
  }
  if (found.empty()) throw InputError(missing_data(kName, folder / *endings.begin()));
  if (found.size() > 1) {
    refuse(
        kName, folder, fmt::format("have one file that ends in {}", *endings.begin()),
        fmt::format("has {} and {}", found[0].filename().string(), found[1].filename().string()));
  }
  return found.front();
}

// Whose each image is. The file must have a number for every image of the part.
std::vector<std::int32_t> read_clients(const fs::path& path, std::size_t images) {
  const std::vector<std::uint8_t> bytes = read_data_file(kName, path);
  if (bytes.size() != 4 * images) {
    refuse(kName, path, fmt::format("have {} bytes, a client's number for each image", 4 * images),
           fmt::format("has {}", bytes.size()));
  }
  std::vector<std::int32_t> clients(images);
  for (std::size_t i = 0; i < images; ++i) {
    clients[i] = little_i32(bytes.data() + 4 * i);
    if (clients[i] < 0) {
      refuse(kName, path, "have numbers from 0 on", fmt::format("entry {} is {}", i, clients[i]));
    }
  }
  return clients;
}

// Clients in the order of their first images.
void name_clients(const std::vector<std::int32_t>& clients, ImagePart& part) {
  std::unordered_map<std::int32_t, std::size_t> places;
  for (std::size_t i = 0; i < clients.size(); ++i) {
    const auto [found, is_new] = places.try_emplace(clients[i], part.ids.size());
    if (is_new) {
      part.ids.push_back(fmt::format("{}", clients[i]));
      part.examples.emplace_back();
    }
    part.examples[found->second].push_back(std::uint32_t(i));
  }
}

// Examples of one part; bad ones are counted in `skipped`. `client_path` is empty where nobody names clients.
ImagePart read_part(const fs::path& image_path, const fs::path& label_path,
                    const fs::path& client_path, std::size_t classes,
                    std::vector<std::int64_t>& shape, std::size_t& skipped) {
  IdxArray images = read_idx(kName, image_path);
  const IdxArray labels = read_idx(kName, label_path);
  if (images.dimensions.size() != 3 && images.dimensions.size() != 4) {
    refuse(kName, image_path, "have 3 or 4 dimensions",
           fmt::format("has {}", images.dimensions.size()));
  }
  if (labels.dimensions.size() != 1 || labels.dimensions[0] != images.dimensions[0]) {
    refuse(kName, label_path, fmt::format("have {} labels", images.dimensions[0]),
           fmt::format("is of shape [{}]", fmt::join(labels.dimensions, ", ")));
  }
  std::vector<std::int64_t> came(images.dimensions.begin() + 1, images.dimensions.end());
  if (came.size() == 2) came.push_back(1);
  if (shape.empty()) shape = came;
  if (came != shape || std::find(came.begin(), came.end(), 0) != came.end()) {
    refuse(kName, image_path, fmt::format("have images of shape [{}]", fmt::join(shape, ", ")),
           fmt::format("has [{}]", fmt::join(came, ", ")));
  }

  ImagePart part;
  std::vector<std::int32_t> clients;
  if (!client_path.empty()) clients = read_clients(client_path, images.dimensions[0]);
  const std::size_t size =
      images.dimensions[0] == 0 ? 0 : images.values.size() / images.dimensions[0];
  const auto label_fits = [&](std::uint8_t label) { return label < classes; };
  if (std::all_of(labels.values.begin(), labels.values.end(), label_fits)) {
    part.pixels = std::move(images.values);
    part.labels.assign(labels.values.begin(), labels.values.end());
    name_clients(clients, part);
    return part;
  }
  std::vector<std::int32_t> kept;
  for (std::size_t i = 0; i < labels.values.size(); ++i) {
    if (!label_fits(labels.values[i])) {
      ++skipped;
      continue;
    }
    const auto first = images.values.begin() + std::ptrdiff_t(i * size);
    part.pixels.insert(part.pixels.end(), first, first + std::ptrdiff_t(size));
    part.labels.push_back(labels.values[i]);
    if (!clients.empty()) kept.push_back(clients[i]);
  }
  name_clients(kept, part);
  return part;
}

}  // namespace

IdxArray read_idx(std::string_view dataset, const fs::path& path) {
  std::vector<std::uint8_t> bytes = read_gzip_file(dataset, path);
  if (bytes.size() < 4 || bytes[0] != 0 || bytes[1] != 0 || bytes[2] != kUnsignedByte ||
      bytes[3] == 0) {
    refuse(dataset, path, "begin with 0, 0, 8 and its number of dimensions",
           fmt::format(
               "begins with {}",
               fmt::join(bytes.begin(),
                         bytes.begin() + std::ptrdiff_t(std::min<std::size_t>(4, bytes.size())),
                         ", ")));
  }
  const std::size_t header = 4 + 4 * std::size_t(bytes[3]);
  if (bytes.size() < header) {
    refuse(dataset, path, fmt::format("have a header of {} bytes", header),
           fmt::format("has {} bytes", bytes.size()));
  }
  IdxArray array;
  std::uint64_t expected = 1;
  for (std::size_t i = 4; i < header; i += 4) {
    array.dimensions.push_back(big_u32(bytes.data() + i));
    expected *= array.dimensions.back();
    if (expected > std::uint64_t(1) << 40) {
      refuse(dataset, path, "have at most 2^40 values",
             fmt::format("is of shape [{}]", fmt::join(array.dimensions, ", ")));
    }
  }
  check_data_size(dataset, path, bytes.size(), header + expected);
  bytes.erase(bytes.begin(), bytes.begin() + std::ptrdiff_t(header));
  array.values = std::move(bytes);
  return array;
}

std::unique_ptr<Dataset> open_idx(const DataSettings& settings, std::uint64_t seed,
                                  const fs::path& folder) {
  const fs::path here = folder / settings.path;
  const fs::path train_images =
      find_ending(here, {"train-images-idx3-ubyte", "train-images-idx4-ubyte"});
  const fs::path train_labels = find_ending(here, {"train-labels-idx1-ubyte"});
  const fs::path test_images =
      find_ending(here, {"t10k-images-idx3-ubyte", "test-images-idx3-ubyte",
                         "t10k-images-idx4-ubyte", "test-images-idx4-ubyte"});
  const fs::path test_labels =
      find_ending(here, {"t10k-labels-idx1-ubyte", "test-labels-idx1-ubyte"});

  ImageTask task;
  DatasetInfo& info = task.info;
  info.name = kName;
  task.keeps_test_only = true;
  std::error_code ignored;
  const bool natural = find_partition(settings.partition).natural() &&
                       fs::exists(here / "clients_train.i32", ignored);
  const auto clients_of = [&](std::string_view part) {
    return natural ? here / fmt::format("clients_{}.i32", part) : fs::path();
  };
  task.train = read_part(train_images, train_labels, clients_of("train"), 256, info.features,
                         info.skipped_records);
  for (const std::int32_t label : task.train.labels) {
    info.outputs = std::max(info.outputs, std::size_t(label) + 1);
  }
  task.test = read_part(test_images, test_labels, clients_of("test"), info.outputs, info.features,
                        info.skipped_records);
  return make_image_dataset(std::move(task), settings, seed, here);
}

}  // namespace fedep
