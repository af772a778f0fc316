// Made-up images of known truth, for tests of commands: every class has a picture of its own, and an image is half
// its class's picture and half noise. Pictures from `kUnlikePicture` on are of classes that nobody trains on.
//
//   const ImageRun run(kImageFedEp);
//   predict_file(run.path(), run.write("new", draw_images(1, 200, 0)), run.folder().path());
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/test_files.h"
#include "fedep/random/stream.h"

namespace fedep {

inline constexpr std::size_t kImageSide = 6, kImageClasses = 4, kUnlikePicture = 100;

struct TestImages {
  std::vector<std::uint8_t> pixels, labels;  // IDX files
};

inline std::vector<std::uint8_t> idx_header(std::initializer_list<std::size_t> dimensions) {
  std::vector<std::uint8_t> out{0, 0, 8, std::uint8_t(dimensions.size())};
  for (const std::size_t extent : dimensions) {
    for (const int shift : {24, 16, 8, 0}) out.push_back(std::uint8_t(extent >> shift));
  }
  return out;
}

// `seed` is of the images; classes are those of the pictures from `first_picture` on.
inline TestImages draw_images(std::uint64_t seed, std::size_t count, std::size_t first_picture) {
  std::vector<std::vector<int>> pictures(kImageClasses);
  for (std::size_t c = 0; c < kImageClasses; ++c) {
    Stream stream({.seed = 77, .step = std::uint32_t(first_picture + c)});
    for (std::size_t i = 0; i < kImageSide * kImageSide; ++i) {
      pictures[c].push_back(int(stream.below(128)));
    }
  }
  TestImages out{idx_header({count, kImageSide, kImageSide}), idx_header({count})};
  Stream stream({.seed = seed});
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t label = i % kImageClasses;
    out.labels.push_back(std::uint8_t(label));
    for (const int value : pictures[label]) {
      out.pixels.push_back(std::uint8_t(value + int(stream.below(128))));
    }
  }
  return out;
}

inline constexpr const char* kImageRecipe = R"(
seed = 3
[data]
name = "idx"
path = "images"
partition = "iid"
clients = 5
[client]
epochs = 5
batch = 20
optimizer = { name = "sgd", lr = 0.1 }
[server]
clients_per_round = 5
prior = { mean = 0.0, precision = 1.0 }
[[phase]]
rounds = 6
)";
inline constexpr const char* kImageFedEp =
    "algorithm = \"fed_ep\"\nfactors = \"flat\"\n[phase.inference]\nname = \"laplace\"\nfamily = "
    "\"full\"\n";
inline constexpr const char* kImageFedAvg = "algorithm = \"fed_avg\"\n";

class ImageRun {
 public:
  explicit ImageRun(const std::string& phase, const std::vector<std::string>& overrides = {}) {
    std::filesystem::create_directory(folder_.path() / "images");
    const TestImages train = draw_images(1, 600, 0), test = draw_images(2, 1000, 0);
    folder_.write("images/train-images-idx3-ubyte", train.pixels);
    folder_.write("images/train-labels-idx1-ubyte", train.labels);
    folder_.write("images/t10k-images-idx3-ubyte", test.pixels);
    folder_.write("images/t10k-labels-idx1-ubyte", test.labels);
    run_recipe(parse_recipe(kImageRecipe + phase, "recipe.toml", overrides),
               {.out = path(), .data = folder_.path(), .threads = 1, .resume = false});
  }

  std::filesystem::path path() const { return folder_.path() / "run"; }
  std::filesystem::path write(const std::string& name, const TestImages& images) const {
    return folder_.write(name, images.pixels);
  }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
};

}  // namespace fedep
