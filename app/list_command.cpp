#include "app/list_command.h"

#include <array>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/output.h"
#include "fedep/algorithm/algorithm.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/data/registry.h"
#include "fedep/inference/method.h"
#include "fedep/inference/rows/row_method.h"
#include "fedep/message/table.h"
#include "fedep/model/registry.h"
#include "fedep/optim/optimizer.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/toy/toy_task.h"

namespace fedep {
namespace {

struct Row {
  std::string_view name;
  std::string summary;
};

template <class Table>
std::vector<Row> rows_of(const Table& table) {
  std::vector<Row> rows;
  for (const auto& entry : table) rows.push_back({entry.name, std::string(entry.summary)});
  return rows;
}

std::vector<Row> model_rows() {
  std::vector<Row> rows;
  for (const ModelRow& model : models()) {
    rows.push_back(
        {model.name, fmt::format("{}{}", model.summary, model.on_gpu ? "" : "; no --device cuda")});
  }
  return rows;
}

std::vector<Row> inference_rows() {
  std::vector<Row> rows = rows_of(methods());
  for (const RowMethod& method : row_methods()) {
    if (!is_row_method_only(method.name)) continue;  // the others are listed already
    rows.push_back({method.name, std::string(method.summary)});
  }
  const std::vector<Row> of_toy = rows_of(toy_methods());
  rows.insert(rows.end(), of_toy.begin(), of_toy.end());
  return rows;
}

struct Listing {
  std::string_view name;
  std::vector<Row> (*rows)();
};

constexpr std::array kListings{
    Listing{"algorithms", [] { return rows_of(algorithms()); }},
    Listing{"inference", inference_rows},
    Listing{"models", model_rows},
    Listing{"data", [] { return rows_of(datasets()); }},
    Listing{"partitions", [] { return rows_of(partition_kinds()); }},
    Listing{"optimizers", [] { return rows_of(optimizers()); }},
    Listing{"places", [] { return rows_of(places()); }},
};

std::string text_of(const Listing& listing) {
  std::string text = fmt::format("{}\n", listing.name);
  for (const Row& row : listing.rows()) {
    text += fmt::format("  {:<18} {}\n", row.name, row.summary);
  }
  return text;
}

}  // namespace

std::string list_text(std::string_view what) {
  if (!what.empty()) return text_of(find_row("listing", kListings, what));
  std::string text;
  for (const Listing& listing : kListings) text += text_of(listing);
  return text;
}

void add_list_command(Command& app, int&) {
  auto what = std::make_shared<std::string>();
  Command* command = app.add_subcommand(
      "list", "algorithms, inference, models, data, partitions, optimizers and places, by name");
  command->add_option("what", *what, "one of the lists; default all");
  command->callback([what] { print_text("{}", list_text(*what)); });
}

}  // namespace fedep
