// `fedep data describe`: a data set's clients and examples, the columns of the paper's Table 1, and a
// table's columns and audit.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "app/command.h"
#include "app/data/describe_columns.h"
#include "fedep/data/dataset.h"

namespace fedep {

struct CountSpread {
  std::size_t clients = 0;
  std::size_t examples = 0;
  double mean = 0;  // examples per client
  double std = 0;   // of all clients there are, so divided by their number
};
CountSpread spread_of_counts(const std::vector<std::size_t>& counts);

struct DatasetDescription {
  DatasetInfo info;
  CountSpread train, test;
  bool validation = false;      // `test` is of the validation part (data.validation_fraction)
  std::size_t calibration = 0;  // rows of data.calibration_fraction, of no other count
  std::size_t unlike = 0;       // held-out examples of data.unseen_classes
  std::string model;            // empty: only the data were asked for
  std::optional<std::size_t> model_size;  // weights
  std::size_t small_clients = 0;          // that have fewer training examples than weights
  AuditChoice audit;                      // of a table: what is told of single clients
};
DatasetDescription describe(const Dataset& data);

std::string description_text(const DatasetDescription& description);
std::string description_json(const DatasetDescription& description);  // one line

void add_data_command(Command& app, int& exit_code);

}  // namespace fedep
