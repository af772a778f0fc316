#include "fedep/data/image/tff_sqlite.h"

#include <sys/stat.h>

#include <gtest/gtest.h>

#include "fedep/data/image/test_emnist_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string refusal(const TemporaryFolder& folder) {
  return message_of<InputError>([&] { open_tff_sqlite({}, 1, folder.path()); });
}

TEST(TffSqlite, ClientsComeInOrderOfIdsAndExamplesAsStored) {
  std::vector<SqliteRow> rows{
      {"s", "b", "1"}, {"s", "a", "2"}, {"t", "a", "3"}, {"s", "b", "4"}, {"s", "a", "5"}};
  const TemporaryFolder folder;
  write_sqlite_rows(folder.path() / "x.sqlite", rows);
  std::string order;
  read_tff_sqlite(folder.path() / "x.sqlite", "s",
                  [&](std::string_view client, std::span<const std::uint8_t> message) {
                    order += client;
                    order.append(message.begin(), message.end());
                  });
  EXPECT_EQ(order, "a2a5b1b4");
}

TEST(TffSqlite, BadRecordsAreSkippedAndCounted) {
  TestImages images = some_emnist(1);
  images[0].label = 62;
  images[2].pixels[3] = -0.5;
  images[3].pixels.pop_back();
  std::vector<SqliteRow> rows = sqlite_rows(images);
  rows.push_back({"all_train", "c", "\xff\xff"});
  rows.push_back({"all_test", "c", ""});
  rows.push_back(
      {"all_test", "c", proto_bytes(1, proto_entry("label", proto_integer(3)))});  // no pixels
  const TemporaryFolder folder;
  write_sqlite_rows(folder.path() / "emnist_all.sqlite", rows);
  const auto data = open_tff_sqlite({}, 1, folder.path());
  EXPECT_EQ(data->info().skipped_records, 7u);  // with a's held-out one
  const std::vector<std::pair<std::string, std::size_t>> expected{{"b", 4}, {"c", 5}};
  EXPECT_EQ(data->clients(), expected);  // all of a's are bad
}

TEST(TffSqlite, AClientWithTooFewExamplesIsRefused) {
  const TemporaryFolder folder;
  write_sqlite_rows(folder.path() / "emnist_all.sqlite", sqlite_rows(some_emnist(1)), 2);
  EXPECT_NE(refusal(folder).find("has 2 too few"), std::string::npos) << refusal(folder);
}

TEST(TffSqlite, BadFilesAreRefused) {
  const TemporaryFolder folder;
  EXPECT_NE(refusal(folder).find("emnist_all.sqlite is missing"), std::string::npos);
  folder.write("emnist_all.sqlite", "this is no database, though long enough to have a header");
  EXPECT_NE(refusal(folder).find("must be an SQLite file"), std::string::npos) << refusal(folder);
  folder.write("emnist_all.sqlite", "");  // an empty database, to SQLite
  EXPECT_NE(refusal(folder).find("no such table"), std::string::npos) << refusal(folder);

  const TemporaryFolder other;
  write_sqlite_rows(other.path() / "emnist_all.sqlite", {{"train", "a", "x"}});
  EXPECT_NE(refusal(other).find("must have a split all_train"), std::string::npos)
      << refusal(other);

  const TemporaryFolder cut;
  write_sqlite(cut, some_emnist(1));
  std::filesystem::resize_file(cut.path() / "emnist_all.sqlite", 16384);
  EXPECT_NE(refusal(cut).find("must be an SQLite file"), std::string::npos) << refusal(cut);
}

std::string refusal_of_schema(const char* schema) {
  const TemporaryFolder folder;
  sqlite3* db = nullptr;
  sqlite3_open((folder.path() / "emnist_all.sqlite").c_str(), &db);
  char* error = nullptr;
  EXPECT_EQ(sqlite3_exec(db, schema, nullptr, nullptr, &error), SQLITE_OK) << error;
  sqlite3_close(db);
  return refusal(folder);
}

TEST(TffSqlite, AViewIsRefusedForItMayNeverEnd) {
  const std::string why = refusal_of_schema(
      "CREATE TABLE client_metadata(client_id TEXT, split_name TEXT, num_examples INTEGER);"
      "INSERT INTO client_metadata VALUES ('a', 'all_train', 1);"
      "CREATE VIEW examples AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) "
      "SELECT 'all_train' AS split_name, 'a' AS client_id, x'00' AS serialized_example_proto, i AS "
      "rowid FROM n");
  EXPECT_NE(why.find("examples is no plain table"), std::string::npos) << why;
}

TEST(TffSqlite, ARefusalIsOneLineWhateverTablesAreCalled) {
  const std::string why = refusal_of_schema(
      "CREATE TABLE client_metadata(client_id TEXT);"
      "PRAGMA writable_schema = ON;"
      "UPDATE sqlite_master SET name = 'clie' || char(10) || 't', sql = 'CREATE TABLE ?'");
  EXPECT_NE(why.find("clie?t"), std::string::npos) << why;
}

TEST(TffSqlite, AColumnThatIsComputedMayNotGrowBeyondReason) {
  const std::string why = refusal_of_schema(
      "CREATE TABLE client_metadata(client_id TEXT, split_name TEXT, num_examples INTEGER);"
      "INSERT INTO client_metadata VALUES ('a', 'all_train', 1);"
      "CREATE TABLE examples(split_name TEXT, client_id TEXT, serialized_example_proto AS "
      "(zeroblob(900000000)));"
      "INSERT INTO examples VALUES ('all_train', 'a')");
  EXPECT_NE(why.find("too big"), std::string::npos) << why;
}

TEST(TffSqlite, AJournalBesideTheFileIsNotLookedAt) {
  const TemporaryFolder folder;
  write_sqlite(folder, some_emnist(1));
  for (const char* ending : {"-journal", "-wal"}) {
    ASSERT_EQ(::mkfifo((folder.path() / (std::string("emnist_all.sqlite") + ending)).c_str(), 0600),
              0);
  }
  EXPECT_EQ(open_tff_sqlite({}, 1, folder.path())->clients().size(), 3u);
}

}  // namespace
}  // namespace fedep
