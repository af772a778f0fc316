#include "app/posterior/predict_command.h"

#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include <fmt/format.h>

#include "app/output.h"
#include "app/posterior/prediction_formats.h"
#include "app/run/run_recipe.h"
#include "app/trust.h"
#include "app/whole_number.h"
#include "fedep/message/table.h"
#include "fedep/store/durable_file.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

struct Options {
  std::string path, file, out, format, data, left_out;
  std::optional<int> samples;
  PredictOptions how;
};

// The one that is asked for, else the one that --out ends in, else the first.
const PredictionFormat& format_of_output(const Options& options) {
  if (!options.format.empty()) return find_row("format", kPredictionFormats, options.format);
  for (const PredictionFormat& format : kPredictionFormats) {
    if (fs::path(options.out).extension() == fmt::format(".{}", format.name)) return format;
  }
  return kPredictionFormats.front();
}

// "mean prediction of 500 draws, with 95 % intervals"
std::string how_it_was_made(const PredictedRows& rows) {
  if (rows.samples == 0) return "prediction at the mean, without intervals";
  return fmt::format("mean prediction of {} draws, {}", rows.samples,
                     rows.low.empty() ? "without intervals"
                                      : fmt::format("with {:.4g} % intervals", 100 * rows.level));
}

void write(const fs::path& file, const std::string& text) {
  replace_file(file, std::as_bytes(std::span(text)));
}

// Gives the exit code.
int predict(const Options& options) {
  const PredictionFormat& format = format_of_output(options);
  const PredictedRows rows = predict_file(options.path, options.file, data_folder(options.data),
                                          options.samples, options.how);
  for (const std::string& note : rows.notes) say("{}\n", note);
  const std::string text = format.text(rows);
  if (options.out.empty()) {
    print_bytes(text);
  } else {
    write(options.out, text);
  }
  if (!options.left_out.empty()) write(options.left_out, left_out_csv(rows));
  std::size_t outliers = 0;
  for (std::size_t i = 0; i < rows.size(); ++i) outliers += rows.outlier(i);
  say("{} examples, {} of them unlike the training data by {}; {}\n", rows.size(), outliers,
      rows.outliers.by, how_it_was_made(rows));
  return exit_code_of(rows.verdict);
}

}  // namespace

void add_predict_command(Command& app, int& exit_code) {
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command =
      app.add_subcommand("predict", "probabilities and their uncertainty for new rows or images");
  command->add_option("run", options->path, "run directory or checkpoint")->required();
  command->add_option("--data", options->file, "CSV or TSV table, IDX images, CIFAR-100 records")
      ->required();
  command->add_option("--out", options->out, "where the predictions go; default: printed");
  command->add_option(
      "--format", options->format,
      alternatives(names_of(kPredictionFormats)) + "; default by the name of --out");
  command
      ->add_option("--samples", options->samples,
                   "draws to average, 0: the mean alone; default evaluate.samples, or as many as "
                   "intervals take")
      ->check(whole_number(0, 100000));
  command
      ->add_option("--level", options->how.level,
                   "part of the draws that intervals hold; default 0.95")
      ->check(interval_level());
  command->add_option("--id", options->how.id_column,
                      "column whose values go into the predictions; default data.id_column");
  command->add_option("--left-out", options->left_out,
                      "where rows go that are bad and have no prediction, with their reasons");
  command->add_flag("--average", options->how.average,
                    "use the server's average and draws around it in place of the posterior");
  command->add_flag("!--no-temperature", options->how.temperature,
                    "leave probabilities as the model has them where clients fitted a temperature");
  command->add_option("--training-data", options->data,
                      "folder with data sets, where they are needed; default $FEDEP_DATA");
  command->callback([options, &exit_code] { exit_code = predict(*options); });
}

}  // namespace fedep
