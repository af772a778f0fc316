// Tags of questions in the shape of StackOverflow (Guo+23 Table 1), for runs with hundreds of thousands of
// clients. Nothing is stored of an example: it is made when somebody asks for it, the same at every visit,
// from the address (seed, client, example).
//
//   sizes      lognormal, data.examples on average, with a deviation 1279/397 times as large
//   a client   likes a few of data.tags tags, which are Zipf's
//   example    one to three tags, mostly of those; some ten words, half of them the tags' own, the
//              others Zipf's among data.dimension words; features are shares of words
//
// The test set is 10,000 examples of 1,000 clients of its own, made in the same way.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"

namespace fedep {

std::unique_ptr<Dataset> open_random_tags(const DataSettings& settings, std::uint64_t seed,
                                          const std::filesystem::path& folder = {});

}  // namespace fedep
