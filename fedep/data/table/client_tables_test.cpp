#include "fedep/data/table/client_tables.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/dataset.h"
#include "fedep/data/table/tabular.h"
#include "fedep/data/test_batches.h"

namespace fedep {
namespace {

const TableSpec kSpec{.client_column = "ward", .label_column = "died", .numbers = {"age"}};

std::string line(int ward, int i) {
  const int age = 20 + (37 * i + 11 * ward) % 60;
  return "w" + std::to_string(ward) + "," + std::to_string(i % 2) + "," + std::to_string(age) +
         "\n";
}

DelimitedTable table_of(const std::string& lines) {
  return parse_delimited("ward,died,age\n" + lines, kCsv, "test.csv");
}

// Three wards of ten rows, one after the other or a row of each in turn.
std::string one_after_the_other() {
  std::string text;
  for (int ward = 0; ward < 3; ++ward) {
    for (int i = 0; i < 10; ++i) text += line(ward, i);
  }
  return text;
}
std::string in_turn() {
  std::string text;
  for (int i = 0; i < 10; ++i) {
    for (int ward = 0; ward < 3; ++ward) text += line(ward, i);
  }
  return text;
}

TEST(ClientTables, HaveEveryRowOnceInTheFilesOrder) {
  const DelimitedTable file = table_of(in_turn());
  PackedTable table = pack_table(*records_of(file), kSpec);
  const ClientTables clients = client_tables(table, kSpec, {}, "test.csv");
  EXPECT_EQ(clients.ids, (std::vector<std::string>{"w0", "w1", "w2"}));
  std::vector<bool> seen(30);
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(clients.train.of(c).size() + clients.test.of(c).size(), 10u);
    for (const RowLists* rows : {&clients.train, &clients.test}) {
      EXPECT_TRUE(std::ranges::is_sorted(rows->of(c)));
      for (const std::uint32_t row : rows->of(c)) {
        EXPECT_EQ(row % 3, c);
        EXPECT_FALSE(seen[row]);
        seen[row] = true;
      }
    }
  }
}

TEST(ClientTables, OfFewExamplesAreThoseThatMayBeLearnedFrom) {
  const DelimitedTable file = table_of(one_after_the_other() + line(3, 0) + line(3, 1));
  PackedTable table = pack_table(*records_of(file), kSpec);
  const DataSettings settings{.min_examples = 3, .max_examples = 5};
  const ClientTables clients = client_tables(table, kSpec, settings, "test.csv");
  EXPECT_EQ(clients.ids, (std::vector<std::string>{"w0", "w1", "w2"}));
  for (std::size_t c = 0; c < 3; ++c) {
    EXPECT_EQ(clients.train.of(c).size(), 5u);
    EXPECT_EQ(clients.test.of(c).size(), 2u);
  }
}

TEST(Tabular, IsTheSameHoweverClientsRowsLieAmongOthers) {
  const auto a = tabular_dataset(table_of(one_after_the_other()), kSpec, {});
  const auto b = tabular_dataset(table_of(in_turn()), kSpec, {});
  ASSERT_EQ(a->clients(), b->clients());
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(training_batch(*a, c), training_batch(*b, c));
  EXPECT_EQ(test_batch(*a), test_batch(*b));
}

}  // namespace
}  // namespace fedep
