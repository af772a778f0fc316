#include "app/data/import_command.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include "app/output.h"
#include "app/run/run_recipe.h"
#include "app/whole_number.h"
#include "fedep/config/read_recipe.h"
#include "fedep/data/fingerprint.h"
#include "fedep/data/made_up/synthetic.h"
#include "fedep/data/registry.h"
#include "fedep/data/shard/shards.h"
#include "fedep/data/table/write_table.h"
#include "fedep/message/check.h"
#include "fedep/message/error.h"
#include "fedep/sim/family_choice.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

// For a recipe that is run from anywhere, quoted.
std::string path_text(const std::string& path) {
  return Json(fs::absolute(path).lexically_normal().string()).dump();
}

struct ImportOptions {
  std::string recipe;
  std::string data;
  std::string out;
  std::vector<std::string> overrides;
};

int import_data(const ImportOptions& options) {
  Recipe recipe = read_recipe(options.recipe, options.overrides);
  // A run's choices, which shards leave open.
  recipe.data.validation_fraction = recipe.data.calibration_fraction = 0;
  recipe.data.unseen_classes.clear();
  const std::unique_ptr<Task> task = make_task(recipe, data_folder(options.data));
  plan_run(decide_families(recipe, *task).recipe, *task);
  if (task->data() == nullptr) {
    throw InputError(fmt::format("data import: data must have examples to cut, but {} has none",
                                 recipe.data.name));
  }
  const ShardTotals totals = write_shards(*task->data(), recipe.seed, options.out);
  // What was written is what a run on it will see, or the import has failed.
  DataSettings settings = recipe.data;
  settings.name = "shards";
  settings.path = options.out;
  if (fingerprint(*open_dataset(settings, recipe.seed, "")) != fingerprint(*task->data())) {
    std::error_code ignored;
    fs::remove(fs::path(options.out) / "manifest.json", ignored);  // so that nobody reads them
    throw RunError(
        fmt::format("{}: shards must read back as they were written, but do not", options.out));
  }
  say("{} clients, {} + {} examples: {} files, {:.1f} MB\n", task->data()->clients().size(),
      totals.train, totals.test, totals.files, double(totals.bytes) * 1e-6);
  print_text("[data]\nname = \"shards\"\npath = {}\n{}", path_text(options.out),
             recipe.data.augment ? "augment = true\n" : "");
  return 0;
}

struct SynthOptions {
  DataSettings settings{.name = "synthetic"};
  std::uint64_t seed = 1;
  std::string out;
};

// Tables number the classes that training rows have.
std::size_t training_classes(const Dataset& data) {
  std::set<std::int32_t> labels;
  Batch batch;
  for (std::size_t client = 0; client < data.clients().size(); ++client) {
    std::vector<std::uint32_t> examples(data.clients()[client].second);
    for (std::size_t i = 0; i < examples.size(); ++i) examples[i] = std::uint32_t(i);
    data.train_batch(client, examples, nullptr, batch);
    labels.insert(batch.labels.begin(), batch.labels.end());
  }
  return labels.size();
}

int synthesise(const SynthOptions& options) {
  check_in("data synth", "--test-fraction", options.settings.test_fraction, 0, 1);
  const std::unique_ptr<Dataset> data = open_synthetic(options.settings, options.seed);
  replace_file(options.out, [&](const ByteSink& sink) {
    write_table(*data, [&](std::string_view line) { sink(std::as_bytes(std::span(line))); });
  });
  if (const std::size_t classes = training_classes(*data); classes < kSyntheticClasses) {
    say("only {} of {} classes have training examples: a run on the table knows no others\n",
        classes, kSyntheticClasses);
  }
  say("{} clients, {} features: {}\n", data->clients().size(), data->info().feature_count(),
      options.out);
  print_text(
      "[data]\nname = \"tabular\"\npath = {}\nclient_column = \"client\"\nlabel_column = "
      "\"label\"\nlabel = \"classes\"\ntest_column = \"part\"\nscale = false\n",
      path_text(options.out));
  return 0;
}

}  // namespace

void add_import_command(Command& data, int& exit_code) {
  auto options = std::make_shared<ImportOptions>();
  Command* command = data.add_subcommand(
      "import", "check a recipe's data as a run would, and write a file per client");
  command->add_option("recipe", options->recipe, "recipe file (TOML)")->required();
  command->add_option("--out", options->out, "folder for the shards, new or empty")->required();
  command->add_option("--data", options->data, "folder with data sets; default $FEDEP_DATA");
  command->add_option("--set", options->overrides, "section.key=value instead of the recipe's")
      ->take_all();
  command->callback([options, &exit_code] { exit_code = import_data(*options); });
}

void add_synth_command(Command& data, int& exit_code) {
  auto options = std::make_shared<SynthOptions>();
  DataSettings& settings = options->settings;
  Command* command =
      data.add_subcommand("synth", "write the task synthetic(alpha, beta) as a CSV table");
  command->add_option("--out", options->out, "the table's file")->required();
  command->add_option("--clients", settings.clients, "default 30")->check(whole_number(1, 1000000));
  command->add_option("--dimension", settings.dimension, "features; default 60")
      ->check(whole_number(1, 1000000));
  command->add_option("--examples", settings.examples, "per client, on average; default 100")
      ->check(whole_number(1, 100000000));
  command->add_option("--alpha", settings.alpha, "how much clients' models differ; default 1");
  command->add_option("--beta", settings.beta, "how much their features do; default 1");
  command->add_option("--test-fraction", settings.test_fraction,
                      "of every client's examples; default 0.2");
  command->add_option("--seed", options->seed, "default 1")->check(whole_number(0));
  command->callback([options, &exit_code] { exit_code = synthesise(*options); });
}

}  // namespace fedep
