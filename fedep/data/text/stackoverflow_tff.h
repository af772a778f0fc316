// StackOverflow as TFF publishes it: stackoverflow_train.h5 and stackoverflow_test.h5 in one
// folder, HDF5 with a group examples/<client> of string arrays tokens, title and tags (others are
// ignored). Text is tokens + " " + title, cut at white space, tags are cut at | (facts §9.3).
//
// Vocabularies are TFF's if they lie in the same folder (stackoverflow.word_count, lines of word
// and count; stackoverflow.tag_count, a JSON object of counts), else chosen from the training
// clients' questions. Of a client the first data.max_examples questions are used; the test file is
// used whole.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/text/question_rows.h"

namespace fedep {

inline constexpr const char* kTffTrainFile = "stackoverflow_train.h5";
inline constexpr const char* kTffTestFile = "stackoverflow_test.h5";

// Reads folder / settings.path.
std::unique_ptr<Dataset> open_stackoverflow_tff(const DataSettings& settings, std::uint64_t seed,
                                                const std::filesystem::path& folder);

// The first `size` names of the published lists.
std::vector<std::string> read_word_counts(const std::filesystem::path& file, std::size_t size);
std::vector<std::string> read_tag_counts(const std::filesystem::path& file, std::size_t size);

}  // namespace fedep
