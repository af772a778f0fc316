#include "app/posterior/predict_inputs.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "fedep/data/append_batch.h"
#include "fedep/data/registry.h"
#include "fedep/data/table/delimited.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/score/event_risk.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamed = 10;  // bad rows that are said one by one

// Rows of a dense batch, a few at a time.
std::vector<Batch> in_chunks(const Batch& all, std::size_t width) {
  std::vector<Batch> out;
  for (std::size_t begin = 0; begin < all.size; begin += kPredictChunk) {
    out.push_back(rows_of(all, begin, std::min(all.size, begin + kPredictChunk), width));
  }
  return out;
}

// As training reads a client's name.
std::string without_spaces(const std::string& cell) {
  const std::size_t begin = cell.find_first_not_of(" \t"), end = cell.find_last_not_of(" \t");
  return begin == std::string::npos ? std::string() : cell.substr(begin, end - begin + 1);
}

// Spells, a few at a time, whose examples are their pieces.
std::vector<Batch> spells_in_chunks(const EncodedTable& rows) {
  std::vector<std::size_t> offsets{0};
  offsets.insert(offsets.end(), rows.ends.begin(), rows.ends.end());
  std::vector<Batch> out;
  for (std::size_t begin = 0; begin < rows.rows.size(); begin += kPredictChunk) {
    const std::size_t end = std::min(rows.rows.size(), begin + kPredictChunk);
    out.push_back(batch_of_spells(rows.batch, offsets, begin, end));
  }
  return out;
}

// Where the ids are; none: rows have none.
std::optional<std::size_t> id_column_of(const DelimitedTable& table, const std::string& asked,
                                        const std::string& in_recipe,
                                        std::vector<std::string>& notes) {
  if (!asked.empty()) return table.column(asked);
  if (in_recipe.empty()) return std::nullopt;
  if (table.has(in_recipe)) return table.column(in_recipe);
  notes.push_back(fmt::format("{}: there is no column {} (data.id_column): rows have numbers alone",
                              table.source, shown(in_recipe)));
  return std::nullopt;
}

// Ids that are not there, or more than once, do not say which row is meant.
void note_unclear_ids(const DelimitedTable& table, std::size_t column,
                      std::vector<std::string>& notes) {
  std::unordered_map<std::string_view, std::size_t> first;  // to the row
  std::size_t without = 0, again = 0;
  std::string first_without, first_again;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const std::string& id = table.rows[i][column];
    if (id.empty()) {
      if (without++ == 0) first_without = fmt::format("row {}", table.numbers[i]);
      continue;
    }
    const auto [found, is_new] = first.emplace(id, i);
    if (is_new || again++ > 0) continue;
    first_again = fmt::format("{} in rows {} and {}", shown(id), table.numbers[found->second],
                              table.numbers[i]);
  }
  if (again > 0) {
    notes.push_back(
        fmt::format("{}: {} of {} rows have an id that an earlier row has, first {}: row numbers "
                    "tell them apart",
                    table.source, again, table.rows.size(), first_again));
  }
  if (without > 0) {
    notes.push_back(fmt::format("{}: {} of {} rows have no id, first {}", table.source, without,
                                table.rows.size(), first_without));
  }
}

std::vector<LeftOutRow> left_out_of(const DelimitedTable& table, const EncodedTable& rows,
                                    std::optional<std::size_t> id_column) {
  std::vector<LeftOutRow> out;
  for (const RecordPlace& place : table.bad_places) {
    out.push_back({.number = place.number,
                   .line = place.line,
                   .why = fmt::format("it has not the header's {} fields, or stray quotes",
                                      table.columns.size())});
  }
  for (const EncodedTable::LeftOut& row : rows.left_out) {
    out.push_back({.number = table.numbers[row.row],
                   .line = table.lines[row.row],
                   .id = id_column ? table.rows[row.row][*id_column] : "",
                   .why = row.why});
  }
  std::ranges::sort(out, {}, &LeftOutRow::number);
  return out;
}

void note_left_out(const DelimitedTable& table, PredictInputs& in) {
  if (in.left_out_count == 0) return;
  for (std::size_t i = 0; i < std::min(kNamed, in.left_out.size()); ++i) {
    const LeftOutRow& row = in.left_out[i];
    in.notes.push_back(fmt::format("{}:{}: row {}{} is left out: {}", table.source, row.line,
                                   row.number, row.id.empty() ? "" : " (" + shown(row.id) + ")",
                                   row.why));
  }
  const std::size_t all = in.numbers.size() + in.left_out_count;
  in.notes.push_back(fmt::format("{} of {} rows are left out{}", in.left_out_count, all,
                                 in.left_out_count > kNamed ? "; --left-out FILE names all" : ""));
}

// What is said of each kind of unlike column, after "3 of 20 rows have".
struct UnlikeNote {
  UnlikeKind kind;
  std::string_view text;
};
constexpr std::array kUnlikeNotes{
    UnlikeNote{UnlikeKind::far, "a number more than 5 deviations from its mean in training"},
    UnlikeNote{UnlikeKind::category, "a category that training did not; it stands at the mean"},
    UnlikeNote{UnlikeKind::constant,
               "another value in a column that did not vary in training, and predictions do not "
               "read it"},
    UnlikeNote{UnlikeKind::limits,
               "a number beyond what training took for possible; it is taken as missing"}};
static_assert(kFarDeviations == 5);

void note_unlike(const DelimitedTable& table, const EncodedTable& rows, PredictInputs& in) {
  for (const UnlikeNote& note : kUnlikeNotes) {
    std::size_t count = 0, first_line = 0;
    std::string first_column;
    for (std::size_t i = 0; i < in.unlike.size(); ++i) {
      const auto found = std::ranges::find(in.unlike[i], note.kind, &Unlike::kind);
      if (found == in.unlike[i].end()) continue;
      if (count++ > 0) continue;
      first_line = table.lines[rows.rows[i]];
      first_column = found->column;
    }
    if (count == 0) continue;
    in.notes.push_back(fmt::format("{}:{}: {} of {} rows have {} (here {})", table.source,
                                   first_line, count, in.numbers.size(), note.text,
                                   shown(first_column)));
  }
}

[[noreturn]] void refuse_without_rows(const DelimitedTable& table, const PredictInputs& in) {
  if (in.left_out.empty()) {
    throw InputError(fmt::format("{}: expected rows, but there is only a header", table.source));
  }
  throw InputError(fmt::format("{}:{}: expected a good row, but all {} are bad: {}", table.source,
                               in.left_out.front().line, in.left_out_count,
                               in.left_out.front().why));
}

void read_table(const SavedPosterior& saved, const fs::path& file, const TableFeatures& features,
                const std::string& id_column, PredictInputs& in) {
  const DelimitedTable table = read_delimited(file, format_of(file));
  const EncodedTable rows = encode_table(table, features);
  const auto ids = id_column_of(table, id_column, saved.recipe.data.id_column, in.notes);
  if (ids) note_unclear_ids(table, *ids, in.notes);
  for (const std::size_t row : rows.rows) {
    in.numbers.push_back(table.numbers[row]);
    if (ids) in.ids.push_back(table.rows[row][*ids]);
  }
  const std::string& hospital = features.spec.client_column;
  if (saved.recipe.model.site_intercept && table.has(hospital)) {
    const std::size_t column = table.column(hospital);
    for (const std::size_t row : rows.rows) {
      in.clients.push_back(without_spaces(table.rows[row][column]));
    }
  }
  in.left_out = left_out_of(table, rows, ids);
  in.left_out_count = table.bad_records + rows.left_out.size();
  if (in.numbers.empty()) refuse_without_rows(table, in);
  note_left_out(table, in);
  in.unlike = unlike_rows(table, rows, features);
  note_unlike(table, rows, in);
  in.batches = features.spec.is_time_to_event() ? spells_in_chunks(rows)
                                                : in_chunks(rows.batch, in.info.feature_count());
}

void check_exists(std::string_view command, const fs::path& file) {
  std::error_code ignored;
  if (fs::exists(file, ignored)) return;
  throw InputError(fmt::format("{}: {} is missing", command, file.string()));
}

// Data sets say --data, which is the new examples here.
void check_training_data(const DataSettings& data, const fs::path& folder) {
  std::error_code ignored;
  if (data.path.empty() || fs::exists(folder / data.path, ignored)) return;
  throw InputError(
      fmt::format("predict: {} is missing; --training-data DIR or $FEDEP_DATA names the folder "
                  "that the run's data.path is in",
                  (folder / data.path).string()));
}

// Rows or images as `in.info` describes them; `data` null: features.json was enough.
void read_examples(const SavedPosterior& saved, const fs::path& file, const Dataset* data,
                   const std::string& id_column, PredictInputs& in) {
  if (in.info.table) return read_table(saved, file, *in.info.table, id_column, in);
  if (!id_column.empty()) {
    throw InputError(
        fmt::format("predict: --id must be a column of a table, but {} has images", file.string()));
  }
  const std::optional<RawImages> raw = data->raw_images();
  const Batch all = read_images(file, in.info, raw ? raw->projection : nullptr);
  for (std::size_t i = 1; i <= all.size; ++i) in.numbers.push_back(i);
  in.batches = in_chunks(all, in.info.feature_count());
}

}  // namespace

PredictInputs read_inputs(const SavedPosterior& saved, const fs::path& file,
                          const fs::path& data_folder, const std::string& id_column) {
  check_exists("predict", file);
  PredictInputs in;
  if (std::shared_ptr<const TableFeatures> table = kept_features(saved)) {
    in.info = info_of(*table);
    in.info.table = std::move(table);
  } else {
    check_training_data(saved.recipe.data, data_folder);
    in.data = open_task_data(saved.recipe, data_folder);
    in.info = in.data->info();
  }
  read_examples(saved, file, in.data.get(), id_column, in);
  return in;
}

PredictInputs read_inputs(const SavedPosterior& saved, const fs::path& file, const Dataset& data,
                          const std::string& id_column) {
  check_exists("evaluate --unlike", file);
  PredictInputs in;
  in.info = data.info();
  read_examples(saved, file, &data, id_column, in);
  return in;
}

}  // namespace fedep
