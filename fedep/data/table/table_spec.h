// What the columns of a table are for.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "fedep/config/recipe.h"
#include "fedep/data/batch.h"
#include "fedep/data/table/delimited.h"

namespace fedep {

// The product of two feature columns.
struct Interaction {
  std::string first = {};
  std::string second = {};

  bool operator==(const Interaction&) const = default;
};

struct TableSpec {
  std::string client_column = {};
  std::string label_column = {};
  TargetKind target = TargetKind::binary;     // or label (the values there are), real, count
  std::vector<std::string> positive = {"1"};  // binary: values that mean 1,
  std::vector<std::string> negative = {};     // and 0; empty: the only other; "*": all others
  std::vector<std::string> numbers = {};      // feature columns
  std::vector<std::string> categories = {};   // feature columns, one-hot but for a baseline
  std::vector<std::string> missing = {"", "?", "NA"};
  std::map<std::string, std::vector<std::string>> missing_in = {};  // column -> further values
  std::string group_column = {};  // rows of a group are held out together; empty: each on its own
  std::string id_column = {};     // names a row for who reads predictions; no feature
  std::string test_column = {};   // train or test; empty: some of a client's rows are drawn
  std::string exposure_column = {};  // count: what a mean is multiplied by; empty: nothing
  bool intercept = false;            // a first column of ones, for models without a bias
  std::vector<std::string> missing_indicators = {};  // columns whose missing values are a feature
  std::vector<Interaction> interactions = {};
  std::string start_column = {};  // time to event: where a spell begins; empty: at 0,
  std::string stop_column = {};   // and where it ends; empty: the label is no event

  // Rows are spells, from start to stop, and the label says whether they ended with the event: yes or no.
  // Examples are pieces of spells, and the target is a count (person_time.h).
  bool is_time_to_event() const { return !stop_column.empty(); }
  // Examples have time or something else that their mean is multiplied by.
  bool has_exposure() const { return !exposure_column.empty() || is_time_to_event(); }
  // What a cell of the label column says, which of an event is yes or no.
  TargetKind cell_target() const { return is_time_to_event() ? TargetKind::binary : target; }

  bool operator==(const TableSpec&) const = default;
};

// What the recipe says of the table. Every column not named is a feature if data.features is empty.
TableSpec table_spec(const DataSettings& settings, const DelimitedTable& table);

}  // namespace fedep
