// Records of a table, read as a TableSpec says.
//
//   const RecordParser parser(table, spec);   // throws InputError if a column is not there
//   const std::optional<TableRecord> record = parser.parse(table.rows[0]);
//
// Values are compared as numbers where they are: a category 4.0 is the category 4.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "fedep/data/table/delimited.h"
#include "fedep/data/table/table_scale.h"
#include "fedep/data/table/table_spec.h"

namespace fedep {

struct Label {
  std::string value = {};
  double number = 0;  // binary: 0 or 1; real: the value; label: not used
};

struct TableRecord {
  TableRow features;
  Label label;
  std::string group;
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

 private:
  struct Feature {
    std::size_t index = 0;
    std::set<std::string> missing;  // values that mean missing, in this column
  };

  std::vector<Feature> numbers_, categories_;
};

class RecordParser {
 public:
  RecordParser(const DelimitedTable& table, const TableSpec& spec);

  // The client's id, empty if there is none.
  std::string client(const std::vector<std::string>& fields) const;
  // None without a label, with a label that may not be, with a number that is none, or with a test
  // column that is neither train nor test.
  std::optional<TableRecord> parse(const std::vector<std::string>& fields) const;
  // Why client() or parse() has nothing: "lactate is >4.0, which is no number".
  std::string problem(const std::vector<std::string>& fields) const;

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
