#include "fedep/data/made_up/random_images.h"

#include <array>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/data/image/image_dataset.h"
#include "fedep/message/check.h"

namespace fedep {
namespace {

constexpr const char* kName = "data set random_images";
constexpr std::size_t kSide = kRandomImageSide;
constexpr std::size_t kChannels = 3;
constexpr std::size_t kPixels = kSide * kSide * kChannels;
constexpr std::size_t kTiles = 4;        // of a picture, each way
constexpr double kMostImages = 1 << 22;  // 12 GiB

using Picture = std::array<std::uint8_t, kPixels>;

// The lower seven bits of each of a block's bytes.
std::array<std::uint8_t, 16> seven_bits(const PhiloxCounter& words) {
  std::array<std::uint8_t, 16> out{};
  for (std::size_t i = 0; i < out.size(); ++i) {
    out[i] = std::uint8_t(words[i / 4] >> (8 * (i % 4)) & 0x7F);
  }
  return out;
}

Picture draw_picture(std::uint64_t seed, std::size_t label) {
  Stream stream({.seed = seed,
                 .purpose = Purpose::synthetic_data,
                 .client = client_key("random_images picture"),
                 .step = std::uint32_t(label)});
  std::array<std::uint8_t, kTiles * kTiles * kChannels> tiles{};
  for (std::uint8_t& value : tiles) value = std::uint8_t(stream.below(128));
  Picture picture{};
  constexpr std::size_t kTileSide = kSide / kTiles;
  for (std::size_t place = 0; place < kPixels; ++place) {
    const std::size_t row = place / (kSide * kChannels), column = place / kChannels % kSide;
    const std::size_t tile = row / kTileSide * kTiles + column / kTileSide;
    picture[place] = tiles[tile * kChannels + place % kChannels];
  }
  return picture;
}

// Block 0 of an image's address is for its label, the others are its noise.
void add_image(ImagePart& part, const std::vector<Picture>& pictures, const Address& address) {
  const auto label = std::size_t(Stream(address).below(kRandomImageClasses));
  const Stream stream(address);
  const Picture& picture = pictures[label];
  Picture image;
  static_assert(kPixels % 16 == 0);
  for (std::size_t first = 0; first < kPixels; first += 16) {
    const std::array<std::uint8_t, 16> noise = seven_bits(stream.block(1 + first / 16));
    for (std::size_t i = 0; i < 16; ++i) {
      image[first + i] = std::uint8_t(picture[first + i] + noise[i]);
    }
  }
  part.pixels.insert(part.pixels.end(), image.begin(), image.end());
  part.labels.push_back(std::int32_t(label));
}

// `kind` (0 train, 1 test) keeps the two parts' numbers apart.
ImagePart draw_part(std::size_t clients, std::size_t per_client, std::uint32_t kind,
                    const std::vector<Picture>& pictures, std::uint64_t seed) {
  ImagePart part;
  part.pixels.reserve(clients * per_client * kPixels);
  for (std::size_t k = 0; k < clients && per_client > 0; ++k) {
    part.ids.push_back(fmt::format("client-{}", k));
    part.examples.emplace_back(per_client);
    std::iota(part.examples.back().begin(), part.examples.back().end(),
              std::uint32_t(part.labels.size()));
    const std::uint64_t client = client_key(part.ids.back());
    for (std::size_t i = 0; i < per_client; ++i) {
      add_image(part, pictures,
                {.seed = seed,
                 .purpose = Purpose::synthetic_data,
                 .round = kind,
                 .client = client,
                 .step = std::uint32_t(i)});
    }
  }
  return part;
}

}  // namespace

std::unique_ptr<Dataset> open_random_images(const DataSettings& settings, std::uint64_t seed,
                                            const std::filesystem::path& folder) {
  check_positive(kName, "data.clients", settings.clients);
  check_positive(kName, "data.examples", settings.examples);
  check_not_negative(kName, "data.test_fraction", settings.test_fraction);
  const double test_examples = std::round(settings.test_fraction * settings.examples);
  check_in(kName, "the number of images (data.clients times data.examples, and the test set)",
           settings.clients * (settings.examples + test_examples), 1, kMostImages);

  std::vector<Picture> pictures;
  for (std::size_t label = 0; label < kRandomImageClasses; ++label) {
    pictures.push_back(draw_picture(seed, label));
  }
  const auto clients = std::size_t(settings.clients);
  ImageTask task;
  task.info.name = settings.name;
  task.info.features = {kSide, kSide, kChannels};
  task.info.outputs = kRandomImageClasses;
  task.train = draw_part(clients, std::size_t(settings.examples), 0, pictures, seed);
  task.test = draw_part(clients, std::size_t(test_examples), 1, pictures, seed);
  return make_image_dataset(std::move(task), settings, seed, folder);
}

}  // namespace fedep
