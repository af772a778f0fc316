#include "app/posterior/coefficients_command.h"

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "app/output.h"
#include "app/run/run_recipe.h"
#include "app/trust.h"
#include "fedep/message/error.h"
#include "fedep/message/table.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

struct Options {
  std::string path, data, format, out, forest;
  bool json = false, standardised = false;
  CoefficientOptions how = {};
};

const CoefficientFormat& format_of(const Options& options) {
  if (options.json && !options.format.empty() && options.format != "json") {
    throw InputError(fmt::format("--json and --format {}: one of them at most", options.format));
  }
  if (options.json) return find_row("format", coefficient_formats(), "json");
  if (!options.format.empty()) return find_row("format", coefficient_formats(), options.format);
  const std::string ending = std::filesystem::path(options.out).extension().string();
  if (ending == ".tex") return find_row("format", coefficient_formats(), "latex");
  for (const CoefficientFormat& format : coefficient_formats()) {
    if (ending == fmt::format(".{}", format.name)) return format;
  }
  return coefficient_formats().front();
}

std::string written(const Options& options, const CoefficientFormat& format,
                    const CoefficientTable& table) {
  if (format.name != "text") return format.write(table);
  if (options.how.shares) return shares_text(table);
  return coefficients_text(table,
                           options.standardised ? EffectUnit::standardised : EffectUnit::own);
}

// Gives the exit code.
int print_coefficients(const Options& options) {
  const CoefficientFormat& format = format_of(options);
  const CoefficientTable table =
      read_coefficients(options.path, data_folder(options.data), options.how);
  const std::string text = written(options, format, table);
  if (!options.out.empty()) {
    replace_file(options.out, std::as_bytes(std::span(text)));
  } else if (format.name == "text" || format.name == "json") {
    print_text("{}", text);
  } else {
    print_bytes(text);
  }
  if (!options.forest.empty()) {
    const std::string figure = draw_forest(forest_of(table));
    replace_file(options.forest, std::as_bytes(std::span(figure)));
    say("{} has the forest plot\n", options.forest);
  }
  if (!format.says_notes) {
    if (const std::string none = no_intervals(table); !none.empty()) say("{}\n", none);
    for (const std::string& note : table.notes) say("Note: {}.\n", note);
  }
  return exit_code_of(table.verdict);
}

}  // namespace

void add_coefficients_command(Command& app, int& exit_code) {
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command = app.add_subcommand(
      "coefficients", "a linear model's coefficients and ratios with their intervals");
  command->add_option("run", options->path, "run directory or checkpoint")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--level", options->how.level, "of intervals, between 0 and 1; default 0.95");
  command
      ->add_option("--per", options->how.per,
                   "COLUMN=NUMBER: tell a column's effect for so many of its units")
      ->take_all();
  command
      ->add_option("--contrast", options->how.contrasts,
                   "COLUMN=A,B: level A of a category against level B")
      ->take_all();
  command->add_option(
      "--reference", options->how.reference,
      "of several classes the one that others are compared with; default the first");
  command->add_flag("--standardised", options->standardised,
                    "tell effects for one standard deviation of every column");
  command->add_flag("--shares", options->how.shares,
                    "each client's share of the information on every coefficient");
  command->add_option(
      "--format", options->format,
      alternatives(names_of(coefficient_formats())) + "; default by the name of --out, else text");
  command->add_flag("--json", options->json, "the same as --format json: one line");
  command->add_option("--out", options->out, "where the table goes; default: printed");
  command->add_option("--forest", options->forest,
                      "also write a forest plot, as SVG, to this file");
  command->callback([options, &exit_code] { exit_code = print_coefficients(*options); });
}

}  // namespace fedep
