// How well hospitals' own held-out patients are predicted, by cross-validation: with intercepts of their own
// (recipe/heart_disease/ep_site.toml), with one intercept for all (ep_full.toml), and by each hospital alone.
//
//   FEDEP_DATA=… build/bin/own_rows_tables [REPEATS]      of five folds each; 2
//
// Prints the table of result/hospitals.md. Columns are scaled once, by all rows; outcomes of a fold's held-out
// rows are seen by nobody. Predictions are averaged over 200 draws.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "fedep/config/read_recipe.h"
#include "fedep/data/append_batch.h"
#include "fedep/data/registry.h"
#include "fedep/model/registry.h"
#include "fedep/random/stream.h"
#include "fedep/sim/learning_task.h"
#include "fedep/sim/process.h"
#include "fedep/sim/rows/own_intercept.h"
#include "fedep/sim/score/predictive.h"
#include "test/site_study.h"

namespace fedep {
namespace {

constexpr std::size_t kFolds = 5;
constexpr int kDraws = 200;

struct Split {
  std::size_t client;
  std::vector<std::uint32_t> train, test;
};

// Every client's rows in another order, a fifth of them held out.
std::vector<Split> split(const Dataset& data, std::uint64_t repeat, std::size_t fold) {
  std::vector<Split> out;
  for (std::size_t k = 0; k < data.clients().size(); ++k) {
    Stream stream({.seed = repeat, .purpose = Purpose::test, .client = k});
    const std::size_t n = data.clients()[k].second;
    std::vector<std::size_t> order(n);
    for (std::size_t i = 0; i < n; ++i) order[i] = i;
    for (std::size_t i = n; i > 1; --i) {
      std::swap(order[i - 1], order[std::size_t(stream.uniform() * double(i))]);
    }
    Split& one = out.emplace_back(Split{.client = k, .train = {}, .test = {}});
    for (std::size_t i = 0; i < n; ++i) {
      (i % kFolds == fold ? one.test : one.train).push_back(std::uint32_t(order[i]));
    }
  }
  return out;
}

// Some clients of `data` with these parts of their rows; both must outlive it.
class PartOfRows final : public Dataset {
 public:
  PartOfRows(const Dataset& data, std::vector<Split> parts)
      : data_(data), parts_(std::move(parts)) {
    for (std::size_t k = 0; k < parts_.size(); ++k) {
      const std::string& name = data.clients()[parts_[k].client].first;
      clients_.emplace_back(name, parts_[k].train.size());
      names_.push_back(name);
      for (const std::uint32_t row : parts_[k].test) test_.emplace_back(k, row);
    }
  }

  const DatasetInfo& info() const override { return data_.info(); }
  const std::vector<std::pair<std::string, std::size_t>>& clients() const override {
    return clients_;
  }
  void train_batch(std::size_t client, std::span<const std::uint32_t> examples,
                   const Address* augmentation, Batch& out) const override {
    std::vector<std::uint32_t> rows;
    for (const std::uint32_t i : examples) rows.push_back(parts_[client].train[i]);
    data_.train_batch(parts_[client].client, rows, augmentation, out);
  }
  std::size_t test_size() const override { return test_.size(); }
  void test_batch(std::size_t begin, std::size_t end, Batch& out) const override {
    out = {};
    Batch one;
    for (std::size_t i = begin; i < end; ++i) {
      const std::uint32_t row = test_[i].second;
      data_.train_batch(parts_[test_[i].first].client, {&row, 1}, nullptr, one);
      append(one, out);
    }
  }
  const std::vector<std::string>& test_clients() const override { return names_; }
  std::size_t test_client(std::size_t example) const override { return test_[example].first; }

 private:
  const Dataset& data_;
  std::vector<Split> parts_;
  std::vector<std::pair<std::string, std::size_t>> clients_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::size_t, std::uint32_t>> test_;  // client, row
};

// -log p of each held-out row, in the data's order.
std::vector<double> losses(Recipe recipe, std::unique_ptr<Dataset> data) {
  recipe.server.clients_per_round = int(data->clients().size());
  recipe.evaluate = {.every = 0};
  const std::unique_ptr<Task> task = make_learning_task(recipe, std::move(data));
  const Dataset& rows = *task->data();
  const ServerState state = play_in_memory(recipe, *task);
  const auto model = make_model(recipe.model, rows.info());
  Predictive predictive(*model, state);
  const OwnIntercepts own = own_intercepts(rows, *model, predictive.weights().span());
  Batch batch;
  rows.test_batch(0, rows.test_size(), batch);
  std::vector<double> out;
  predictive.marginal(
      {.seed = recipe.seed, .round = state.round, .samples = kDraws}, 1,
      [&](std::size_t) -> const Batch& { return batch; },
      [&](std::size_t, const Predictions& found) {
        for (std::size_t i = 0; i < batch.size; ++i) {
          const double yes = found.mean[i];
          out.push_back(-std::log(batch.labels[i] == 1 ? yes : 1 - yes));
        }
      },
      [&](std::size_t, std::size_t row) -> const OwnIntercept& {
        return own.of(rows.test_clients()[rows.test_client(row)]);
      });
  return out;
}

struct Mean {
  double sum = 0, squares = 0, n = 0;

  void add(double x) { sum += x, squares += x * x, n += 1; }
  double value() const { return sum / n; }
  double error() const { return std::sqrt((squares / n - value() * value()) / n); }
};

// By client: each model's loss, and how much better its own intercept is than a model of its own, paired.
struct OwnRows {
  std::string name;
  Mean alone, shared, site;
  std::vector<double> gap;  // by row, averaged over repeats
};

void play_fold(const Dataset& data, const Recipe& site, const Recipe& shared, std::uint64_t repeat,
               std::size_t fold, std::vector<OwnRows>& found) {
  const std::vector<Split> parts = split(data, repeat, fold);
  const std::vector<double> own = losses(site, std::make_unique<PartOfRows>(data, parts));
  const std::vector<double> common = losses(shared, std::make_unique<PartOfRows>(data, parts));
  std::size_t at = 0;
  for (std::size_t k = 0; k < parts.size(); ++k) {
    const std::vector<double> alone =
        losses(shared, std::make_unique<PartOfRows>(data, std::vector<Split>{parts[k]}));
    OwnRows& one = found[k];
    for (std::size_t i = 0; i < alone.size(); ++i, ++at) {
      one.alone.add(alone[i]);
      one.shared.add(common[at]);
      one.site.add(own[at]);
      one.gap[parts[k].test[i]] += own[at] - alone[i];
    }
  }
}

void print(std::vector<OwnRows> found, std::size_t repeats) {
  fmt::print(
      "| hospital | patients | alone | one intercept for all | intercepts of their own | "
      "difference to "
      "alone | its standard error |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n");
  double alone = 0, shared = 0, site = 0, variance = 0;
  for (OwnRows& one : found) {
    Mean gap;
    for (const double by : one.gap) gap.add(by / double(repeats));
    fmt::print("| {} | {} | {:.3f} | {:.3f} | {:.3f} | {:+.3f} | {:.3f} |\n", one.name,
               one.gap.size(), one.alone.value(), one.shared.value(), one.site.value(), gap.value(),
               gap.error());
    alone += one.alone.sum / double(repeats);
    shared += one.shared.sum / double(repeats);
    site += one.site.sum / double(repeats);
    variance += gap.n * gap.n * gap.error() * gap.error();
  }
  fmt::print("| sum over all patients | | {:.1f} | {:.1f} | {:.1f} | {:+.1f} | {:.1f} |\n", alone,
             shared, site, site - alone, std::sqrt(variance));
}

void study(std::size_t repeats) {
  const char* const folder = std::getenv("FEDEP_DATA");
  if (folder == nullptr) throw InputError("$FEDEP_DATA must name the folder of the data sets");
  Recipe site = read_recipe("recipe/heart_disease/ep_site.toml");
  Recipe shared = read_recipe("recipe/heart_disease/ep_full.toml");
  site.data.test_fraction = 0;
  const auto data = open_dataset(site.data, site.seed, folder);
  std::vector<OwnRows> found;
  for (const auto& [name, rows] : data->clients()) {
    found.push_back(
        {.name = name, .alone = {}, .shared = {}, .site = {}, .gap = std::vector<double>(rows)});
  }
  for (std::size_t repeat = 0; repeat < repeats; ++repeat) {
    for (std::size_t fold = 0; fold < kFolds; ++fold) {
      play_fold(*data, site, shared, repeat + 1, fold, found);
      fmt::print(stderr, "repeat {} fold {}\n", repeat + 1, fold + 1);
    }
  }
  print(std::move(found), repeats);
}

}  // namespace
}  // namespace fedep

int main(int argc, char** argv) {
  fedep::prepare_process();
  try {
    fedep::study(argc > 1 ? std::size_t(std::atoi(argv[1])) : 2);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "own_rows_tables: {}\n", error.what());
    return 2;
  }
}
