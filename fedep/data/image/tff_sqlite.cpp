#include "fedep/data/image/tff_sqlite.h"

#include <array>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <sqlite3.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/image_dataset.h"
#include "fedep/data/image/tf_example.h"
#include "fedep/message/error.h"
#include "fedep/message/nearest.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
constexpr const char* kName = "tff_sqlite";

class Database {
 public:
  explicit Database(const fs::path& path) : path_(path) {
    check_data_exists(kName, path);
    sqlite3* raw = nullptr;
    const int rc = sqlite3_open_v2(path.c_str(), &raw, SQLITE_OPEN_READONLY, nullptr);
    connection_.reset(raw);
    if (rc != SQLITE_OK) refuse();
  }

  [[noreturn]] void refuse() const {
    throw InputError(fmt::format(
        "{}: {} must be an SQLite file with tables examples and client_metadata, but: {}", kName,
        path_.string(), connection_ ? sqlite3_errmsg(connection_.get()) : "out of memory"));
  }

  sqlite3* get() const { return connection_.get(); }

 private:
  fs::path path_;
  std::unique_ptr<sqlite3, int (*)(sqlite3*)> connection_{nullptr, sqlite3_close};
};

// A query with one text parameter, row by row.
class Query {
 public:
  Query(const Database& database, const char* text, std::string_view parameter)
      : database_(database) {
    sqlite3_stmt* raw = nullptr;
    const int rc = sqlite3_prepare_v2(database.get(), text, -1, &raw, nullptr);
    statement_.reset(raw);
    if (rc != SQLITE_OK || sqlite3_bind_text(raw, 1, parameter.data(), int(parameter.size()),
                                             SQLITE_TRANSIENT) != SQLITE_OK) {
      database.refuse();
    }
  }

  bool next() {
    const int rc = sqlite3_step(statement_.get());
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) database_.refuse();
    return rc == SQLITE_ROW;
  }

  // Valid until the next row.
  std::string_view text(int column) const {
    const auto* chars = sqlite3_column_text(statement_.get(), column);
    return {reinterpret_cast<const char*>(chars),
            std::size_t(sqlite3_column_bytes(statement_.get(), column))};
  }
  std::span<const std::uint8_t> blob(int column) const {
    const auto* bytes =
        static_cast<const std::uint8_t*>(sqlite3_column_blob(statement_.get(), column));
    return {bytes, std::size_t(sqlite3_column_bytes(statement_.get(), column))};
  }
  std::int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }

 private:
  const Database& database_;
  std::unique_ptr<sqlite3_stmt, int (*)(sqlite3_stmt*)> statement_{nullptr, sqlite3_finalize};
};

// Pixels and label of a message; none if it is a bad record.
std::optional<std::int32_t> emnist_example(std::span<const std::uint8_t> message,
                                           std::array<std::uint8_t, kEmnistPixels>& image) {
  const auto example = parse_tf_example(message);
  if (!example) return std::nullopt;
  const auto* pixels = example->floats("pixels");
  const auto* labels = example->integers("label");
  if (!pixels || pixels->size() != kEmnistPixels || !labels || labels->size() != 1 ||
      labels->front() < 0 || labels->front() >= kEmnistClasses) {
    return std::nullopt;
  }
  for (std::size_t k = 0; k < kEmnistPixels; ++k) {
    const auto byte = pixel_byte(double((*pixels)[k]));
    if (!byte) return std::nullopt;
    image[k] = *byte;
  }
  return std::int32_t(labels->front());
}

std::size_t read_part(const fs::path& path, std::string_view split, ImagePart& part) {
  std::size_t skipped = 0;
  std::array<std::uint8_t, kEmnistPixels> image{};
  read_tff_sqlite(path, split, [&](std::string_view client, std::span<const std::uint8_t> message) {
    if (const auto label = emnist_example(message, image)) {
      add_image(part, client, image, *label);
    } else {
      ++skipped;
    }
  });
  return skipped;
}

}  // namespace

void read_tff_sqlite(const fs::path& path, std::string_view split, const TffExampleSink& sink) {
  const Database database(path);
  std::map<std::string, std::int64_t, std::less<>> missing;
  Query metadata(database,
                 "SELECT client_id, num_examples FROM client_metadata WHERE split_name = ?", split);
  while (metadata.next()) missing[std::string(metadata.text(0))] += metadata.integer(1);
  if (missing.empty()) {
    throw InputError(fmt::format("{}: {} must have a split {}, but client_metadata names none",
                                 kName, path.string(), shown(split)));
  }
  // An index on (split_name, client_id), which TFF's files have, gives this order without sorting.
  Query examples(database,
                 "SELECT client_id, serialized_example_proto FROM examples WHERE split_name = ? "
                 "ORDER BY client_id, rowid",
                 split);
  while (examples.next()) {
    const std::string_view client = examples.text(0);
    if (const auto found = missing.find(client); found != missing.end()) --found->second;
    sink(client, examples.blob(1));
  }
  for (const auto& [client, count] : missing) {
    if (count != 0) {
      throw InputError(
          fmt::format("{}: {} must have as many examples of client {} in {} as "
                      "client_metadata says, but has {} too {}",
                      kName, path.string(), shown(client), shown(split), count > 0 ? count : -count,
                      count > 0 ? "few" : "many"));
    }
  }
}

std::unique_ptr<Dataset> open_tff_sqlite(const DataSettings& settings, std::uint64_t seed,
                                         const fs::path& folder) {
  const fs::path here = folder / settings.path;
  ImageTask task{.info = emnist_info(kName), .train = {}, .test = {}};
  task.info.skipped_records += read_part(here / "emnist_all.sqlite", "all_train", task.train);
  task.info.skipped_records += read_part(here / "emnist_all.sqlite", "all_test", task.test);
  return make_image_dataset(std::move(task), settings, seed, here);
}

}  // namespace fedep
