#include "test/fuzz/fuzz_targets.h"

#include <array>

namespace fedep {
namespace {

constexpr std::array kTargets{
    FuzzTarget{"recipe", "a recipe's TOML, with [set]", fuzz_recipe},
    FuzzTarget{"set", "the text after --set", fuzz_set},
    FuzzTarget{"csv", "a table and what a recipe makes of it", fuzz_csv},
    FuzzTarget{"features", "features.json", fuzz_features},
    FuzzTarget{"idx", "images in IDX, plain or packed", fuzz_idx},
    FuzzTarget{"leaf", "LEAF's JSON", fuzz_leaf},
    FuzzTarget{"hdf5", "TFF's EMNIST", fuzz_hdf5},
    FuzzTarget{"hdf5_text", "TFF's Stack Overflow", fuzz_hdf5_text},
    FuzzTarget{"sqlite", "TFF's EMNIST, and the messages in it", fuzz_sqlite},
    FuzzTarget{"shard", "a client's examples, right checksums", fuzz_shard},
    FuzzTarget{"manifest", "manifest.json of shards", fuzz_manifest},
    FuzzTarget{"safetensors", "a checkpoint's file", fuzz_safetensors},
    FuzzTarget{"site", "a client's factor, right checksums", fuzz_site},
    FuzzTarget{"log", "log.jsonl", fuzz_log},
    FuzzTarget{"evaluation", "evaluation.json of a run that is shown", fuzz_evaluation},
    FuzzTarget{"results", "results.jsonl", fuzz_results},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

}  // namespace fedep
