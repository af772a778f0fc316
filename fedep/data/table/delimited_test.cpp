#include "fedep/data/table/delimited.h"

#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using Row = std::vector<std::string>;
using Rows = std::vector<Row>;

DelimitedTable csv(std::string_view text) { return parse_delimited(text, kCsv, "test.csv"); }
DelimitedTable tsv(std::string_view text) { return parse_delimited(text, kTsv, "test.tsv"); }

std::string quoted(const std::string& field) {
  std::string out = "\"";
  for (const char c : field) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string error_of(std::string_view text, const DelimitedFormat& format = kCsv) {
  return message_of<InputError>([&] { parse_delimited(text, format, "test.csv"); });
}

TEST(Delimited, AFileOfSeveralWindowsIsReadAsItIs) {
  // Characters, quotes and line ends lie at every place around the ends of the window.
  const TemporaryFolder folder;
  for (const std::string shift : {"", "x", "xy", "xyz"}) {
    std::string text = "a" + shift + ",b\r\n";
    Rows expected;
    for (int i = 0; text.size() < (std::size_t(5) << 19); ++i) {
      const Row row{std::to_string(i),
                    i % 3 ? "K\xC3\xB6ln \xE2\x82\xAC" : "two\nlines, \"\xF0\x9F\x98\x80\""};
      text += row[0] + "," + quoted(row[1]) + (i % 5 ? "\r\n" : "\n");
      expected.push_back(row);
    }
    const DelimitedTable table =
        read_delimited(folder.write("t.csv", std::string_view(text)), kCsv);
    EXPECT_EQ(table.rows, expected);
    EXPECT_EQ(table.lines.back(), std::size_t(std::count(text.begin(), text.end(), '\n')) -
                                      (expected.back()[1].starts_with("two") ? 1 : 0));
  }
}

TEST(Delimited, AFieldLargerThanTheWindowComesWhole) {
  const std::string large(std::size_t(3) << 20, 'x');
  EXPECT_EQ(csv("a,b\n\"" + large + "\",1\n2," + large).rows, (Rows{{large, "1"}, {"2", large}}));
}

TEST(Delimited, MoreThanAMillionColumnsAreRefused) {
  const std::string why = error_of(std::string(1'000'001, ','));
  EXPECT_NE(why.find("more than 1000000"), std::string::npos) << why;
}

TEST(Delimited, RecordsComeOneByOneAsTheTableHasThem) {
  const std::string text = "a,b\n1,2\nbad\n\n3,\"4\n\"\n5,6\n";
  const TemporaryFolder folder;
  const auto file = folder.write("t.csv", std::string_view(text));
  const DelimitedTable table = read_delimited(file, kCsv);
  for (const auto& records : {read_records(file, kCsv), records_of(table)}) {
    Rows rows;
    std::vector<std::string> places;
    while (records->next()) {
      rows.emplace_back(records->fields().begin(), records->fields().end());
      places.push_back(records->place());
    }
    EXPECT_EQ(rows, table.rows);
    EXPECT_EQ(places, (std::vector<std::string>{"line 2", "line 5", "line 7"}));
    EXPECT_EQ(records->heading().bad_records, 1u);
    EXPECT_EQ(records->heading().first_bad_line, 3u);
  }
}

TEST(Delimited, QuotingIsUndoneByReading) {
  const Row fields = {"plain", "a,b", "say \"no\"", "two\nlines", "", "\r\n", "\"", " spaces "};
  std::string header = "c0", line = quoted(fields[0]);
  for (std::size_t i = 1; i < fields.size(); ++i) {
    header += ",c" + std::to_string(i);
    line += "," + quoted(fields[i]);
  }
  const DelimitedTable table = csv(header + "\n" + line + "\n");
  EXPECT_EQ(table.rows, Rows{fields});
  EXPECT_EQ(table.bad_records, 0u);
}

TEST(Delimited, LineEndsDoNotMatter) {
  const Rows expected = {{"1", "2"}, {"3", "4"}};
  for (const char* text :
       {"a,b\n1,2\n3,4\n", "a,b\r\n1,2\r\n3,4\r\n", "a,b\n1,2\n3,4", "a,b\n\n1,2\n\r\n3,4\n\n",
        "\xEF\xBB\xBF"
        "a,b\n1,2\n3,4\r"}) {
    const DelimitedTable table = csv(text);
    EXPECT_EQ(table.columns, (Row{"a", "b"})) << text;
    EXPECT_EQ(table.rows, expected) << text;
    EXPECT_EQ(table.bad_records, 0u) << text;
  }
}

TEST(Delimited, RowsAreNumberedAsInTheFileAndBadRecordsHaveTheirPlaces) {
  const DelimitedTable table =
      parse_delimited("a,b\n1,2\n\n3\n\"x\ny\",4\n5,6\n7,8,9\n10,11\n", kCsv, "t.csv");
  EXPECT_EQ(table.numbers, (std::vector<std::size_t>{1, 3, 4, 6}));  // an empty line is no record
  EXPECT_EQ(table.lines, (std::vector<std::size_t>{2, 5, 7, 9}));
  EXPECT_EQ(table.bad_places, (std::vector<RecordPlace>{{2, 4}, {5, 8}}));
}

TEST(Delimited, ABadRecordIsLeftOutAndCountedAndTheNextIsRead) {
  for (const char* bad :
       {"1", "1,2,3", "1,2\"", "\"1\"x,2", "\"1\" ,2", "1\r,2", "1,\"2\"\"3\"4"}) {
    const DelimitedTable table = csv(std::string("a,b\n5,6\n") + bad + "\n7,8\n");
    EXPECT_EQ(table.rows, (Rows{{"5", "6"}, {"7", "8"}})) << bad;
    EXPECT_EQ(table.bad_records, 1u) << bad;
  }
}

TEST(Delimited, AQuoteInATsvIsACharacter) {
  const DelimitedTable table = tsv("a\tb\n\"x\" y\t\"\nfoo, bar\t2\n");
  EXPECT_EQ(table.rows, (Rows{{"\"x\" y", "\""}, {"foo, bar", "2"}}));
  EXPECT_EQ(table.bad_records, 0u);
}

TEST(Delimited, ColumnsCanBeNamedByTheCaller) {
  const DelimitedTable table = parse_delimited("1,2\n3,4\n", {.columns = {"x", "y"}}, "test");
  EXPECT_EQ(table.rows.size(), 2u);
  EXPECT_EQ(table.column("y"), 1u);
}

TEST(Delimited, AColumnThatIsNotThereGetsTheNearestNamed) {
  try {
    csv("hospital,age\n1,2\n").column("hospitl");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean hospital?"), std::string::npos);
  }
}

TEST(Delimited, ABadFileIsRefused) {
  EXPECT_NE(error_of("").find("empty"), std::string::npos);
  EXPECT_NE(error_of("\n\n").find("empty"), std::string::npos);
  EXPECT_NE(error_of("a,b\n1,\"2\n3,4\n").find("within a quoted field"), std::string::npos);
  EXPECT_NE(error_of("a,a\n1,2\n").find("twice"), std::string::npos);
  EXPECT_NE(error_of(",a\n1,2\n").find("field 1 is empty"), std::string::npos);
  EXPECT_NE(error_of("a,\"b\"c\n1,2\n").find("first line"), std::string::npos);
  EXPECT_NE(
      error_of("a,b\n1,2\n3\n4\n").find(":3: expected records of 2 fields, but 2 of 3 are bad"),
      std::string::npos);
  EXPECT_NE(error_of(std::string_view("a,b\n1,\0\n", 8)).find("NUL"), std::string::npos);
  EXPECT_EQ(error_of("a,b\n"), "") << "a table without rows is a table";
}

TEST(Delimited, TextThatIsNotUtf8IsRefusedWithItsLine) {
  EXPECT_EQ(csv("a\nK\xC3\xB6ln\n\xE2\x82\xAC\n\xF0\x9F\x98\x80\n").rows.size(), 3u);
  for (const std::string bad : {"K\xF6ln", "\xC3", "\xC0\xAF", "\xED\xA0\x80", "\xE2\x82",
                                "\xF4\x90\x80\x80", "\x80", "\xFF"}) {
    const std::string error = error_of("a\nok\n" + bad + "\n");
    EXPECT_NE(error.find(":3: text must be UTF-8"), std::string::npos) << error;
  }
}

TEST(Delimited, AFileReadsTheSamePackedAndPlain) {
  const std::string text = "a,b\n1,\"x\ny\"\n";
  const TemporaryFolder folder;
  const auto packed_file = folder.path() / "packed.csv.gz";
  gzFile packed = gzopen(packed_file.c_str(), "wb");
  gzwrite(packed, text.data(), unsigned(text.size()));
  gzclose(packed);
  const DelimitedTable plain = read_delimited(folder.write("plain.csv", text), kCsv);
  EXPECT_EQ(plain.rows, (Rows{{"1", "x\ny"}}));
  EXPECT_EQ(read_delimited(packed_file, kCsv).rows, plain.rows);
}

TEST(Delimited, ACutOffPackedFileAndAMissingOneAreRefused) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "cut.csv.gz";
  gzFile packed = gzopen(file.c_str(), "wb");
  for (int i = 0; i < 1000; ++i) gzprintf(packed, "%d,%d\n", i, i * i);
  gzclose(packed);
  std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
  EXPECT_THROW(read_delimited(file, kCsv), InputError);
  EXPECT_THROW(read_delimited(folder.path() / "none.csv", kCsv), InputError);
}

TEST(Delimited, TheNameSaysTheFormat) {
  EXPECT_EQ(format_of("x.tsv").separator, '\t');
  EXPECT_EQ(format_of("x.tsv.gz").separator, '\t');
  EXPECT_EQ(format_of("x.csv").separator, ',');
  EXPECT_EQ(format_of("tsv").separator, ',');
}

TEST(Delimited, RowsKnowTheirLines) {
  const DelimitedTable table =
      parse_delimited("a,b\n1,2\n\n\"two\nlines\",3\nbad\n4,5\n", kCsv, "t.csv");
  EXPECT_EQ(table.lines, (std::vector<std::size_t>{2, 4, 7}));
  EXPECT_EQ(table.first_bad_line, 6u);
  EXPECT_EQ(parse_delimited("a\n1\n", kCsv, "t.csv").first_bad_line, 0u);
}

}  // namespace
}  // namespace fedep
