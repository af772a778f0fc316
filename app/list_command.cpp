#include "app/list_command.h"

#include <array>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/message/check.h"
#include "fedep/message/nearest.h"
#include "fedep/optim/optimizer.h"

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

struct Listing {
  std::string_view name;
  std::vector<Row> (*rows)();
};

constexpr std::array kListings{
    Listing{"algorithms", [] { return rows_of(algorithms()); }},
    Listing{"optimizers", [] { return rows_of(optimizers()); }},
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

void add_list_command(CLI::App& app, int&) {
  auto what = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("list", "algorithms, optimizers and so on, by name");
  command->add_option("what", *what, "one of the lists; default all");
  command->callback([what] { list(*what); });
}

}  // namespace fedep
