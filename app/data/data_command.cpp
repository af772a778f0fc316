#include "app/data/data_command.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/data/import_command.h"
#include "app/output.h"
#include "app/run/run_recipe.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/registry.h"
#include "fedep/message/error.h"
#include "fedep/message/table.h"
#include "fedep/model/registry.h"
#include "fedep/sim/learning_task.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

struct DescribeOptions {
  std::string what;  // a recipe's file or a data set's name
  std::string data;
  std::vector<std::string> overrides;
  bool json = false;
  AuditChoice audit;
};

std::string_view target_text(TargetKind target) {
  switch (target) {
    case TargetKind::label:
      return "classes";
    case TargetKind::tags:
      return "tags";
    case TargetKind::binary:
      return "yes or no";
    case TargetKind::count:
      return "counts";
    case TargetKind::real:
      break;
  }
  return "real";
}

bool is_recipe(const std::string& what) {
  return what.ends_with(".toml") || std::filesystem::is_regular_file(what);
}

// A data set by name: in the folder of that name, as settings have it unless --set says otherwise.
Recipe recipe_around(const DescribeOptions& options) {
  find_row("recipe or data set", datasets(), options.what);
  const std::string text = fmt::format(
      "[data]\nname = \"{0}\"\npath = \"{0}\"\n[[phase]]\nalgorithm = \"fed_avg\"\nrounds = 1\n",
      options.what);
  return parse_recipe(text, options.what, options.overrides);
}

std::string per_client(const CountSpread& spread) {
  return fmt::format("{:.4g} ± {:.4g}", spread.mean, spread.std);
}

// What is known of a table that is refused, so that it can be mended.
void print_refused(const TableAudit& audit, const DescribeOptions& options) {
  print_text("{}", options.json ? audit_json(audit, options.audit).dump() + "\n"
                                : audit_text(audit, options.audit));
}

int describe_command(const DescribeOptions& options) {
  const bool with_model = is_recipe(options.what);
  const Recipe recipe =
      with_model ? read_recipe(options.what, options.overrides) : recipe_around(options);
  std::unique_ptr<Dataset> data;
  try {
    data = open_task_data(recipe, data_folder(options.data));
  } catch (const AuditError& error) {
    print_refused(error.audit(), options);
    throw;
  }
  DatasetDescription description = describe(*data);
  description.validation = recipe.data.validation_fraction > 0;
  if (with_model) {
    description.model = recipe.model.name;
    description.model_size = make_model(recipe.model, data->info())->size();
    for (const auto& [id, examples] : data->clients()) {
      description.small_clients += examples < *description.model_size;
    }
  }
  description.audit = options.audit;
  print_text("{}", options.json ? description_json(description) : description_text(description));
  return 0;
}

}  // namespace

CountSpread spread_of_counts(const std::vector<std::size_t>& counts) {
  CountSpread spread{.clients = counts.size()};
  if (counts.empty()) return spread;
  for (const std::size_t count : counts) spread.examples += count;
  spread.mean = double(spread.examples) / double(counts.size());
  double squares = 0;
  for (const std::size_t count : counts) {
    squares += (double(count) - spread.mean) * (double(count) - spread.mean);
  }
  spread.std = std::sqrt(squares / double(counts.size()));
  return spread;
}

DatasetDescription describe(const Dataset& data) {
  DatasetDescription description;
  description.info = data.info();
  std::vector<std::size_t> train, test(data.test_clients().size());
  for (const auto& [id, examples] : data.clients()) train.push_back(examples);
  for (std::size_t i = 0; i < data.test_size(); ++i) ++test[data.test_client(i)];
  description.train = spread_of_counts(train);
  description.test = spread_of_counts(test);
  if (data.calibration()) description.calibration = data.calibration()->test_size();
  if (data.unlike()) description.unlike = data.unlike()->test_size();
  return description;
}

std::string description_text(const DatasetDescription& d) {
  std::string text;
  const auto line = [&](std::string_view name, const std::string& value) {
    text += fmt::format("{:<{}}{}\n", name, d.validation ? 42 : 36, value);
  };
  line("data", d.info.name);
  line("features",
       fmt::format("{}{}", fmt::join(d.info.features, " x "), d.info.sparse ? ", sparse" : ""));
  line("outputs", fmt::format("{} ({})", d.info.outputs, target_text(d.info.target)));
  if (d.model_size) {
    line("model", d.model);
    line("model size", fmt::format("{} weights", *d.model_size));
  }
  const std::string parts = d.validation ? "(train / validation)" : "(train / test)";
  line("clients " + parts, fmt::format("{} / {}", d.train.clients, d.test.clients));
  line("examples " + parts, fmt::format("{} / {}", d.train.examples, d.test.examples));
  line("examples per client " + parts,
       fmt::format("{} / {}", per_client(d.train), per_client(d.test)));
  if (d.calibration > 0) line("examples for temperatures", fmt::to_string(d.calibration));
  if (d.unlike > 0) line("held out of unseen classes", fmt::to_string(d.unlike));
  if (d.info.audit && d.small_clients > 0) {
    line("clients with fewer than weights",
         fmt::format("{} of {}", d.small_clients, d.train.clients));
  }
  if (d.info.skipped_records > 0)
    line("bad records left out", fmt::to_string(d.info.skipped_records));
  if (d.info.audit) text += audit_text(*d.info.audit, d.audit);
  return text;
}

std::string description_json(const DatasetDescription& d) {
  const auto spread = [](const CountSpread& s) {
    return Json{{"clients", s.clients},
                {"examples", s.examples},
                {"examples_per_client_mean", s.mean},
                {"examples_per_client_std", s.std}};
  };
  Json json{{"data", d.info.name},
            {"features", d.info.features},
            {"sparse", d.info.sparse},
            {"outputs", d.info.outputs},
            {"model", d.model_size ? Json(d.model) : Json(nullptr)},
            {"model_size", d.model_size ? Json(*d.model_size) : Json(nullptr)},
            {"train", spread(d.train)},
            {d.validation ? "validation" : "test", spread(d.test)},
            {"calibration_examples", d.calibration},
            {"unlike_examples", d.unlike},
            {"skipped_records", d.info.skipped_records}};
  if (d.info.audit && d.model_size)
    json["clients_with_fewer_examples_than_weights"] = d.small_clients;
  if (d.info.audit) json.update(audit_json(*d.info.audit, d.audit));
  return json.dump() + "\n";
}

void add_data_command(Command& app, int& exit_code) {
  auto options = std::make_shared<DescribeOptions>();
  Command* data = app.add_subcommand("data", "look at data sets, cut them, make them up");
  data->require_subcommand();
  Command* command = data->add_subcommand(
      "describe", "clients, examples, model size; a table's columns and audit");
  command->add_option("what", options->what, "recipe file, or the name of a data set")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--set", options->overrides, "section.key=value instead of the recipe's")
      ->take_all();
  command->add_flag("--json", options->json, "print one line of JSON");
  command->add_flag("--per-client", options->audit.per_client,
                    "a table's columns, client by client");
  command->add_option("--client", options->audit.client, "a table's columns at this client");
  command->add_option("--column", options->audit.column,
                      "this column of a table, client by client");
  command->callback([options, &exit_code] { exit_code = describe_command(*options); });
  add_import_command(*data, exit_code);
  add_synth_command(*data, exit_code);
}

}  // namespace fedep
