#include "app/posterior/export_command.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "app/output.h"
#include "app/posterior/saved_posterior.h"
#include "app/whole_number.h"
#include "fedep/data/table/table_features.h"
#include "fedep/message/dense_gaussian.h"
#include "fedep/message/error.h"
#include "fedep/message/table.h"
#include "fedep/model/torchscript.h"
#include "fedep/sim/score/predictive.h"
#include "fedep/store/json.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

void make_folder(const fs::path& folder) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) throw RunError(fmt::format("{}: cannot make: {}", folder.string(), error.message()));
}

Metadata metadata_of(const SavedPosterior& saved, const std::string& what) {
  Metadata about{{"format", "fedep." + what},
                 {"algorithm", saved.algorithm},
                 {"model", saved.recipe.model.name},
                 {"data", saved.recipe.data.name},
                 {"round", fmt::format("{}", saved.state.round)}};
  if (saved.curvature) about["curvature"] = "full";
  if (!saved.recipe.data.unseen_classes.empty()) {
    about["unseen_classes"] = fmt::format("{}", fmt::join(saved.recipe.data.unseen_classes, ", "));
  }
  const std::shared_ptr<const TableFeatures> table = kept_features(saved);
  if (table && !table->output_names.empty()) about["classes"] = Json(table->output_names).dump();
  return about;
}

// What the deviations are not.
Metadata with_doubts(Metadata about, const SavedPosterior& saved) {
  if (!saved.withheld.empty()) about["withheld"] = saved.withheld;
  if (const std::string note = start_note(saved); !note.empty()) about["note"] = note;
  return about;
}

// `temperature`: of predictions made with what the file has; 0: none was fitted.
Metadata with_temperature(Metadata about, double temperature) {
  if (temperature > 0) about["temperature"] = fmt::format("{}", temperature);
  return about;
}

Metadata about_weights(const SavedPosterior& saved, const std::string& what, double temperature) {
  return with_temperature(with_doubts(metadata_of(saved, what), saved), temperature);
}

fs::path write_weights(const SavedPosterior& saved, const HostVector<float>& values,
                       const std::string& what, double temperature, const fs::path& folder) {
  std::vector<TensorView> tensors;
  std::size_t begin = 0;
  for (const TensorShape& tensor : saved.layout) {
    tensors.push_back({tensor.name, tensor.shape, values.span().subspan(begin, tensor.size())});
    begin += tensor.size();
  }
  const fs::path path = folder / (what + ".safetensors");
  write_safetensors(path, tensors, about_weights(saved, what, temperature));
  return path;
}

// Of all weights in the order of the mean's tensors, row by row.
fs::path write_covariance(const SavedPosterior& saved, const fs::path& folder) {
  const Eigen::MatrixXf sigma = covariance(in_double(saved.state.global)).cast<float>();
  const auto d = std::int64_t(sigma.rows());
  const std::span<const float> values(sigma.data(), std::size_t(sigma.size()));  // symmetric
  const fs::path path = folder / "covariance.safetensors";
  const TensorView tensor{"covariance", {d, d}, values};
  write_safetensors(
      path, std::span(&tensor, 1),
      with_temperature(metadata_of(saved, "covariance"), saved.state.temperatures.marginal));
  return path;
}

constexpr std::size_t kMostNumbers = std::size_t(1) << 30;  // of a file with draws: 4 GiB

struct Options {
  std::string path, out, format = "safetensors";
  int draws = 0;
};

void check_draws(const SavedPosterior& saved, int draws) {
  if (!saved.posterior) {
    throw InputError(fmt::format(
        "export: draws must be of a posterior that was inferred, but {}",
        saved.withheld.empty() ? "the algorithm estimates no uncertainty" : saved.withheld));
  }
  const std::size_t d = saved.state.global.size();
  if (std::size_t(draws) > kMostNumbers / d) {
    throw InputError(fmt::format("export: --draws must be at most {} for {} weights, but is {}",
                                 kMostNumbers / d, d, draws));
  }
}

// What an export of another run, or with other options, may have left in the folder.
void remove_others(const fs::path& folder, const std::vector<fs::path>& written) {
  for (const char* name : {"std", "covariance", "draws", "average", "average_spread"}) {
    const fs::path file = folder / (std::string(name) + ".safetensors");
    if (std::ranges::find(written, file) == written.end()) fs::remove(file);
  }
}

void run_safetensors(const Options& options) {
  if (options.draws > 0) check_draws(read_posterior(options.path), options.draws);
  const std::vector<fs::path> written = export_safetensors(options.path, options.out);
  for (const fs::path& path : written) print_bytes(path.string() + "\n");
  const bool has_std = std::ranges::any_of(
      written, [](const fs::path& path) { return path.filename() == "std.safetensors"; });
  if (options.draws > 0) {
    print_bytes(export_draws(options.path, options.out, options.draws).string() + "\n");
  }
  const SavedPosterior saved = read_posterior(options.path);
  if (const std::string note = start_note(saved); !note.empty()) say("{}\n", note);
  if (has_std) return;
  const std::string& why = saved.withheld;
  say("{}, so there is no std.safetensors\n",
      why.empty() ? "the algorithm estimates no uncertainty" : why);
}

void run_module(const Options& options) {
  if (options.draws > 0) {
    throw InputError(
        "export: --draws must go with the format safetensors, but is with torchscript");
  }
  for (const fs::path& path : export_modules(options.path, options.out)) {
    print_bytes(path.string() + "\n");
  }
}

struct Format {
  std::string_view name;
  void (*run)(const Options& options);
};
constexpr std::array kFormats{Format{"safetensors", run_safetensors},
                              Format{"torchscript", run_module}};

}  // namespace

std::vector<fs::path> export_safetensors(const fs::path& run_or_checkpoint,
                                         const fs::path& folder) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  make_folder(folder);
  const Temperatures& t = saved.state.temperatures;
  std::vector<fs::path> written{
      write_weights(saved, point_estimate(saved.state), "mean", t.point, folder)};
  if (saved.posterior) {
    written.push_back(
        write_weights(saved, sqrt(variance(saved.state.global)), "std", t.marginal, folder));
    if (saved.state.global.full()) written.push_back(write_covariance(saved, folder));
  }
  if (const ServerAverage& average = saved.state.average; average.rounds > 0) {
    written.push_back(write_weights(saved, average.mean, "average", t.average, folder));
    // Where precisions are withheld, rounds' precisions are part of that spread.
    if (saved.withheld.empty() && can_draw_around_average(saved)) {
      const Message around = spread_around(average);
      written.push_back(write_weights(saved, sqrt(variance(around)), "average_spread",
                                      t.average_marginal, folder));
    }
  }
  remove_others(folder, written);
  return written;
}

fs::path export_draws(const fs::path& run_or_checkpoint, const fs::path& folder, int draws) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
  check_draws(saved, draws);
  const std::size_t d = saved.state.global.size();
  // Tensor after tensor, each with its draws one after another.
  std::vector<float> values(std::size_t(draws) * d);
  for (int index = 0; index < draws; ++index) {
    const HostVector<float> one =
        draw_of(saved.state.global, saved.recipe.seed, saved.state.round, index);
    std::size_t begin = 0;
    for (const TensorShape& tensor : saved.layout) {
      const std::size_t size = tensor.size();
      std::copy_n(
          one.span().begin() + std::ptrdiff_t(begin), size,
          values.begin() + std::ptrdiff_t(begin * std::size_t(draws) + std::size_t(index) * size));
      begin += size;
    }
  }
  std::vector<TensorView> tensors;
  std::size_t begin = 0;
  for (const TensorShape& tensor : saved.layout) {
    std::vector<std::int64_t> shape{draws};
    shape.insert(shape.end(), tensor.shape.begin(), tensor.shape.end());
    const std::size_t size = tensor.size() * std::size_t(draws);
    tensors.push_back({tensor.name, shape, std::span(values).subspan(begin, size)});
    begin += size;
  }
  make_folder(folder);
  const fs::path path = folder / "draws.safetensors";
  write_safetensors(path, tensors,
                    about_weights(saved, "draws", saved.state.temperatures.marginal));
  return path;
}

std::vector<fs::path> export_modules(const fs::path& run_or_checkpoint, const fs::path& folder) {
  const SavedPosterior saved = read_posterior(run_or_checkpoint);
#ifdef FEDEP_WITH_TORCH
  make_folder(folder);
  std::vector<fs::path> written;
  const auto write = [&](const char* name, const HostVector<float>& theta, const std::string& what,
                         double temperature) {
    written.push_back(folder / name);
    save_torchscript(saved.recipe.model, saved.layout, theta.span(), written.back(),
                     about_weights(saved, what, temperature));
  };
  const Temperatures& t = saved.state.temperatures;
  write("model.pt", point_estimate(saved.state), "mean", t.point);
  fs::remove(folder / "average.pt");  // of an export before
  if (saved.state.average.rounds > 0) {
    write("average.pt", saved.state.average.mean, "average", t.average);
  }
  return written;
#else
  (void)folder;
  throw InputError("export: format torchscript needs a build with FEDEP_WITH_TORCH=ON");
#endif
}

void add_export_command(Command& app, int&) {
  auto options = std::make_shared<Options>();  // shared: the callback outlives this function
  Command* command =
      app.add_subcommand("export", "a posterior's mean and standard deviations for other programs");
  command->add_option("run", options->path, "run directory or checkpoint")->required();
  command->add_option("--out", options->out, "folder for the files")->required();
  command->add_option("--format", options->format, alternatives(names_of(kFormats)));
  command->add_option("--draws", options->draws, "also write so many draws of the weights")
      ->check(whole_number(1, 1000000));
  command->callback([options] { find_row("format", kFormats, options->format).run(*options); });
}

}  // namespace fedep
