#include "fedep/data/image/tff_sqlite.h"

#include <algorithm>
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

// What a database may do for us: a schema that somebody else wrote is a program, which SQLite runs.
constexpr int kStepsBetweenLooks = 10'000;         // of SQLite's machine
constexpr std::uint64_t kFreeSteps = 100'000'000;  // some seconds
constexpr std::uint64_t kStepsPerByte = 10;        // real files need less than one
constexpr int kMostExampleBytes = 16 << 20;

// "file:…?immutable=1": neither a journal nor a lock beside the file is looked at.
std::string immutable_uri(const fs::path& path) {
  std::string uri = "file:";
  for (const unsigned char c : fs::absolute(path).string()) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '/' || c == '.' || c == '-' || c == '_';
    uri += plain ? std::string(1, char(c)) : fmt::format("%{:02x}", c);
  }
  return uri + "?immutable=1";
}

class Database {
 public:
  explicit Database(const fs::path& path) : path_(path), budget_(kName, path, 0) {
    const FileDescriptor held = open_data_file(kName, path);
    const std::uint64_t size = size_of(held, path);
    budget_ = UnpackBudget(kName, path, size);
    steps_left_ = kFreeSteps + kStepsPerByte * size;
    sqlite3* raw = nullptr;
    const int rc = sqlite3_open_v2(immutable_uri(path).c_str(), &raw,
                                   SQLITE_OPEN_READONLY | SQLITE_OPEN_URI, nullptr);
    connection_.reset(raw);
    if (rc != SQLITE_OK) refuse();
    for (const int off : {SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_ENABLE_VIEW,
                          SQLITE_DBCONFIG_ENABLE_TRIGGER}) {
      sqlite3_db_config(raw, off, 0, nullptr);
    }
    sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_limit(raw, SQLITE_LIMIT_LENGTH, kMostExampleBytes);
    sqlite3_exec(raw, "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0", nullptr, nullptr,
                 nullptr);
    sqlite3_progress_handler(raw, kStepsBetweenLooks, &Database::is_too_long, this);
  }
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  [[noreturn]] void refuse() const {
    refuse(connection_ ? sqlite3_errmsg(connection_.get()) : "out of memory");
  }
  // SQLite's words may hold names from the file, and those may hold anything.
  [[noreturn]] void refuse(std::string_view why) const {
    std::string said(steps_left_ == 0 ? "reading it takes for ever" : why);
    std::ranges::replace_if(
        said, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
    throw InputError(fmt::format(
        "{}: {} must be an SQLite file with tables examples and client_metadata, but: {}", kName,
        path_.string(), said));
  }

  sqlite3* get() const { return connection_.get(); }
  UnpackBudget& budget() { return budget_; }

 private:
  static int is_too_long(void* self) {
    auto& left = static_cast<Database*>(self)->steps_left_;
    left -= std::min<std::uint64_t>(left, kStepsBetweenLooks);
    return left == 0;
  }

  fs::path path_;
  UnpackBudget budget_;
  std::uint64_t steps_left_ = 0;
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

// A view or a virtual table would be a program of the file's author.
void check_is_table(const Database& database, std::string_view name) {
  Query query(
      database,
      "SELECT type, sql FROM sqlite_schema WHERE name = ? COLLATE NOCASE AND type != 'index'",
      name);
  std::size_t found = 0;
  while (query.next()) {
    const bool is_plain = query.text(0) == "table" && query.text(1).starts_with("CREATE TABLE");
    if (!is_plain || ++found > 1) database.refuse(fmt::format("{} is no plain table", name));
  }
  if (found == 0) database.refuse(fmt::format("no such table: {}", name));
}

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
  Database database(path);
  check_is_table(database, "client_metadata");
  check_is_table(database, "examples");
  std::map<std::string, std::int64_t, std::less<>> missing;
  Query metadata(database,
                 "SELECT client_id, num_examples FROM client_metadata WHERE split_name = ?", split);
  while (metadata.next()) {
    database.budget().take(metadata.text(0).size() + 64);
    std::int64_t& count = missing[std::string(metadata.text(0))];
    const std::int64_t more = metadata.integer(1);
    if (more < 0 || __builtin_add_overflow(count, more, &count)) {
      database.refuse("num_examples is no count");
    }
  }
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
    database.budget().take(client.size() + examples.blob(1).size());
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
