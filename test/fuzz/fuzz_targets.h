// The functions that fuzz_targets() lists, by the folder whose readers they call.
#pragma once

#include "test/fuzz/fuzz_target.h"

namespace fedep {

// config
void fuzz_recipe(FuzzInput input);
void fuzz_set(FuzzInput input);

// data
void fuzz_csv(FuzzInput input);
void fuzz_features(FuzzInput input);
void fuzz_idx(FuzzInput input);
void fuzz_leaf(FuzzInput input);
void fuzz_hdf5(FuzzInput input);
void fuzz_hdf5_text(FuzzInput input);
void fuzz_sqlite(FuzzInput input);
void fuzz_shard(FuzzInput input);
void fuzz_manifest(FuzzInput input);

// store, page, app
void fuzz_safetensors(FuzzInput input);
void fuzz_site(FuzzInput input);
void fuzz_log(FuzzInput input);
void fuzz_evaluation(FuzzInput input);
void fuzz_results(FuzzInput input);

}  // namespace fedep
