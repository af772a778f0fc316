// Records of a table, read as a TableSpec says.
//
//   const RecordParser parser(table, spec);   // throws InputError if a column is not there
//   TableRecord record;
//   while (records.next()) if (parser.parse(records.fields(), record)) use(record);
//
// Values are compared as numbers where they are: a category 4.0 is the category 4.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fedep/data/table/delimited.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

// One spelling per value: 4.0, 4 and +4 are 4.
std::string canonical(std::string_view text);

struct Label {
  std::string value = {};
  double number = 0;  // binary: 0 or 1; real and count: the value; label: not used
};

struct TableRecord {
  TableRow features;
  Label label;
  std::string group;  // empty: it belongs to none
  bool test = false;  // as the spec's test_column has it
};

// The feature columns of a table's records. Client and label need not be there.
class FeatureParser {
 public:
  // Throws InputError if a feature column is not there.
  FeatureParser(const DelimitedTable& table, const TableSpec& spec);

  struct Parsed {
    TableRow row = {};
    std::optional<std::size_t> bad = {};  // the first field that should be a number and is not
  };
  Parsed parse(const std::vector<std::string>& fields) const;
  // The same into a row that is there already, whose memory is used again; gives what is bad.
  std::optional<std::size_t> parse(std::span<const std::string_view> fields, TableRow& row) const;
  // The exposure's column, where the exposure is a number and not positive.
  std::optional<std::size_t> refused(std::span<const std::string_view> fields) const;
  // The column of a spell's end, where the spell does not end after it begins.
  std::optional<std::size_t> without_time(std::span<const std::string_view> fields) const;
  double start_of(std::span<const std::string_view> fields) const;  // NaN: there is none

 private:
  // Values that mean missing. A cell is compared in its one spelling: 4.0 as 4.
  struct Missing {
    std::set<std::string, std::less<>> texts;
    std::vector<double> numbers;  // that `texts` spell

    explicit Missing(const std::vector<std::string>& values);
    void add(const std::vector<std::string>& values);
  };
  struct Feature {
    std::size_t index = 0;
    std::shared_ptr<const Missing> missing;  // columns without values of their own share one
  };
  static std::optional<double> parse_number(std::string_view cell, const Missing& missing,
                                            bool& is_bad);
  static double number_of(const Feature& column, std::span<const std::string_view> fields);

  std::vector<Feature> numbers_, categories_;
  std::optional<Feature> exposure_, start_, stop_;
};

class RecordParser {
 public:
  RecordParser(const DelimitedTable& table, const TableSpec& spec);

  // The cell that names the client, which may mean that there is none.
  std::string_view client_cell(std::span<const std::string_view> fields) const;
  // The client's id, empty if there is none.
  std::string client(std::span<const std::string_view> fields) const;
  // False without a label, with a label that may not be, with a number that is none, or with a test
  // column that is neither train nor test; the record then holds nothing of use. Its memory is used
  // again.
  bool parse(std::span<const std::string_view> fields, TableRecord& record) const;
  std::optional<TableRecord> parse(const std::vector<std::string>& fields) const;
  // Why client() or parse() has nothing: "lactate is >4.0, which is no number".
  std::string problem(std::span<const std::string_view> fields) const;
  // What no row may have, whose sense nobody should guess: a count that is negative, fractional or larger
  // than a float can tell apart, an exposure that is not positive, a spell that does not end after it
  // begins. Empty: nothing of that.
  std::string refusal(std::span<const std::string_view> fields) const;

 private:
  std::optional<Label> parse_label(const std::string& value) const;

  std::vector<std::string> columns_;
  TargetKind target_;
  std::set<std::string> positive_, negative_, missing_;
  std::size_t client_ = 0, label_ = 0;
  std::optional<std::size_t> group_, test_;
  FeatureParser features_;
};

}  // namespace fedep
