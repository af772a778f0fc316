// Images of one shape, kept as bytes and given out as floats in [0, 1]: what every EMNIST and IDX
// reader ends in.
//
//   ImageTask task{.info = emnist_info("femnist")};
//   add_image(task.train, "f0424_27", pixels, label);
//   return make_image_dataset(std::move(task), settings, seed, folder);
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/partition.h"

namespace fedep {

// Training or test examples. Where the data do not name clients, `ids` stays empty.
struct ImagePart {
  std::vector<std::uint8_t> pixels;  // [examples, features]
  std::vector<std::int32_t> labels;  // [examples]
  std::vector<std::string> ids;      // of the clients, in the order they came
  Partition examples;                // of each client

  std::size_t size() const { return labels.size(); }
};

struct ImageTask {
  DatasetInfo info;  // features = {height, width, channels}
  ImagePart train;
  ImagePart test;
  bool keeps_test_only = false;  // natural: held-out examples of clients that have none to train on
};

// Appends one example to the client that is named; new clients go to the end.
void add_image(ImagePart& part, std::string_view client, std::span<const std::uint8_t> pixels,
               std::int32_t label);

// A pixel in [0, 1] as a byte, k for k/255 (which is how LEAF and TFF made theirs); none if it lies
// outside or is not a number.
std::optional<std::uint8_t> pixel_byte(double value);

// 28x28x1, labels 0-9 digits, 10-35 upper case, 36-61 lower case; 1.0 is background.
inline constexpr std::size_t kEmnistPixels = 28 * 28;
inline constexpr std::int32_t kEmnistClasses = 62;
DatasetInfo emnist_info(std::string name);

// Partition "natural": the clients the data name; of them those stay that have training examples
// (at least min_examples), with their test examples, and with keeps_test_only those that have test
// examples alone, which are scored and never asked. Otherwise all examples are pooled and given
// out anew: dirichlet, iid, or "given" by partition_train.i32 and partition_test.i32 in the folder,
// settings.examples a client.
std::unique_ptr<Dataset> make_image_dataset(ImageTask task, const DataSettings& settings,
                                            std::uint64_t seed,
                                            const std::filesystem::path& folder);

}  // namespace fedep
