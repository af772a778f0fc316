// TFF's federated EMNIST as SQLite, emnist_all.sqlite: a table examples(split_name, client_id,
// serialized_example_proto), each a tf.train.Example with `pixels` (784 floats in 0..1, 1 =
// background) and `label`, and a table client_metadata(client_id, split_name, num_examples). Splits
// are all_train and all_test.
//
//   const std::unique_ptr<Dataset> data = open_tff_sqlite(settings, seed, "data");
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string_view>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

// Hands over a split's serialized examples, clients in order of their ids, each client's in stored
// order. Throws InputError if the file is not such a database, has no such split, or a client has
// not the number of examples that client_metadata says.
using TffExampleSink =
    std::function<void(std::string_view client, std::span<const std::uint8_t> message)>;
void read_tff_sqlite(const std::filesystem::path& path, std::string_view split,
                     const TffExampleSink& sink);

// Reads folder / settings.path. A message that is malformed or has other features, pixels outside
// [0, 1] or a label that is not 0 to 61 is a bad record: skipped and counted.
std::unique_ptr<Dataset> open_tff_sqlite(const DataSettings& settings, std::uint64_t seed,
                                         const std::filesystem::path& folder);

}  // namespace fedep
