// StackOverflow tag prediction: the share of 10,000 words in a question predicts which of 500 tags
// it has. Two layouts:
//
//   FOLDER/questions.tsv (or data.path is a .tsv file)   columns user_id or user; tags, between spaces
//                                                        or |; title or text, or both; others ignored
//   FOLDER/stackoverflow_{train,test}.h5                 TFF's (stackoverflow_tff.h)
//
// Of a TSV, users with at least data.min_examples questions are the clients. A fixed
// data.test_fraction of a client's questions, and all questions of other users, are the test set;
// of the rest the first data.max_examples are for training. Words and tags are chosen from these
// training questions alone.
//
// Words of a TSV: text in lower case (ASCII), cut at every character but letters, digits, bytes
// beyond ASCII and + # . _ ' -; then without . _ ' - at its end and _ ' - at its beginning. So c++,
// c#, .net, asp.net and don't are words.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/dataset.h"
#include "fedep/data/text/question_rows.h"

namespace fedep {

std::vector<std::string> title_words(std::string_view text);

// Pieces between any of the separators, none of them empty.
std::vector<std::string> split_any(std::string_view text, std::string_view separators);

// Name, sizes and names of a data set over this vocabulary.
DatasetInfo question_info(const DataSettings& settings, const Vocabulary& vocabulary,
                          std::size_t skipped_records);

std::unique_ptr<Dataset> open_stackoverflow(const DataSettings& settings, std::uint64_t seed,
                                            const std::filesystem::path& folder);

}  // namespace fedep
