// What `fedep predict` reads: rows of a table or images, prepared as those of training were.
//
//   const PredictInputs in = read_inputs(saved, "new.csv", data_folder, "patient");
//   for (const LeftOutRow& row : in.left_out) say("row {}: {}\n", row.number, row.why);
//
// A row that training would have left out for one of its features is left out here too, and named; all others
// keep the number that they have in the file. The outcome is not read, the hospital only where hospitals have intercepts of
// their own; neither need be there.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "app/posterior/saved_posterior.h"
#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"
#include "fedep/data/table/unlike_rows.h"

namespace fedep {

// Examples predicted at a time.
inline constexpr std::size_t kPredictChunk = 500;

struct LeftOutRow {
  std::size_t number = 0;  // in the file, from 1
  std::size_t line = 0;    // where it begins, from 1
  std::string id = {};     // empty where there is none
  std::string why = {};    // "lactate is >4.0, which is no number"

  bool operator==(const LeftOutRow&) const = default;
};

struct PredictInputs {
  DatasetInfo info = {};
  std::unique_ptr<Dataset> data = {};  // null where features.json was enough
  std::vector<Batch> batches = {};
  std::vector<std::size_t> numbers = {};  // of each example, as in the file, from 1
  std::vector<std::string> ids = {};      // of each; empty: there is no column of them
  // Whose each is, where that matters (model.site_intercept); empty: there is no column that says so.
  std::vector<std::string> clients = {};
  std::vector<std::vector<Unlike>> unlike = {};  // of each row of a table
  std::vector<LeftOutRow> left_out = {};         // by number,
  std::size_t left_out_count = 0;                // and how many there are, named or not
  std::vector<std::string> notes = {};
};

// `id_column` empty: the recipe's data.id_column, where the file has it. Throws InputError for a file that has no
// good row, or lacks a column.
PredictInputs read_inputs(const SavedPosterior& saved, const std::filesystem::path& file,
                          const std::filesystem::path& data_folder, const std::string& id_column);
// The same for the run's data when they are open already; PredictInputs::data stays null.
PredictInputs read_inputs(const SavedPosterior& saved, const std::filesystem::path& file,
                          const Dataset& data, const std::string& id_column);

}  // namespace fedep
