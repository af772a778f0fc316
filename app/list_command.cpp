#include "app/list_command.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/data/partition.h"
#include "fedep/data/registry.h"
#include "fedep/inference/method.h"
#include "fedep/message/check.h"
#include "fedep/message/nearest.h"
#include "fedep/model/registry.h"
#include "fedep/optim/optimizer.h"
#include "fedep/sim/places.h"

namespace fedep {
namespace {

struct Row {
  std::string_view name, summary;
};

template <class Table>
std::vector<Row> rows_of(const Table& table) {
  std::vector<Row> rows;
  for (const auto& entry : table) rows.push_back({entry.name, entry.summary});
  return rows;
}

// The toy task's Gaussians are no data set with examples, so they and their inference are in no
// registry.
constexpr Row kToyData{"toy", "Gaussian clients of the toy experiment; inference exact only"};
constexpr std::array kToyInference{
    Row{"exact", "toy: moments of the tilted distribution, diagonal"},
    Row{"exact_identity", "toy: the same, one variance for all coordinates"},
};

std::vector<Row> data_rows() {
  std::vector<Row> rows = rows_of(datasets());
  rows.insert(rows.begin(), kToyData);
  return rows;
}

std::vector<Row> inference_rows() {
  std::vector<Row> rows = rows_of(methods());
  rows.insert(rows.end(), kToyInference.begin(), kToyInference.end());
  return rows;
}

struct Listing {
  std::string_view name;
  std::vector<Row> (*rows)();
};

constexpr std::array kListings{
    Listing{"algorithms", [] { return rows_of(algorithms()); }},
    Listing{"inference", inference_rows},
    Listing{"models", [] { return rows_of(models()); }},
    Listing{"data", data_rows},
    Listing{"partitions", [] { return rows_of(partition_kinds()); }},
    Listing{"optimizers", [] { return rows_of(optimizers()); }},
    Listing{"places", [] { return rows_of(places()); }},
};

void print(const Listing& listing) {
  fmt::print("{}\n", listing.name);
  for (const Row& row : listing.rows()) fmt::print("  {:<18} {}\n", row.name, row.summary);
}

void list(const std::string& what) {
  std::vector<std::string_view> names;
  for (const Listing& listing : kListings) {
    if (what.empty() || listing.name == what) print(listing);
    if (listing.name == what) return;
    names.push_back(listing.name);
  }
  if (!what.empty()) throw InputError(unknown_name("listing", what, names));
}

}  // namespace

void add_list_command(Command& app, int&) {
  auto what = std::make_shared<std::string>();
  Command* command = app.add_subcommand(
      "list", "algorithms, inference, models, data, partitions, optimizers and places, by name");
  command->add_option("what", *what, "one of the lists; default all");
  command->callback([what] { list(*what); });
}

}  // namespace fedep
