#include "bench/timed_client.h"

#include <algorithm>
#include <cmath>

#include "fedep/data/memory_dataset.h"
#include "fedep/model/cnn.h"
#include "fedep/model/linear.h"
#include "fedep/model/resnet18.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr float kLambda = 1.0f;

std::unique_ptr<Model> stackoverflow() {
  return make_sparse_linear({.features = 10000, .outputs = 500, .target = TargetKind::tags});
}

// Examples made up on the spot; words of a sparse one follow Zipf's law.
Batch make_rows(const Case& task) {
  Stream stream({.seed = 1, .purpose = Purpose::test});
  Batch rows;
  rows.size = task.examples;
  if (task.words == 0) {
    rows.dense.resize(task.examples * task.features);
    fill_normal({.seed = 2, .purpose = Purpose::test}, rows.dense);
    for (std::size_t i = 0; i < task.examples; ++i) {
      rows.labels.push_back(std::int32_t(stream.below(task.outputs)));
    }
    return rows;
  }
  for (std::size_t i = 0; i < task.examples; ++i) {
    std::vector<std::uint32_t> words;
    while (words.size() < task.words) {
      const auto word = std::uint32_t(std::pow(double(task.features + 1), stream.uniform())) - 1;
      if (std::find(words.begin(), words.end(), word) == words.end()) words.push_back(word);
    }
    std::sort(words.begin(), words.end());
    rows.sparse.columns.insert(rows.sparse.columns.end(), words.begin(), words.end());
    rows.sparse.values.insert(rows.sparse.values.end(), words.size(), 1.0f / float(task.words));
    rows.sparse.offsets.push_back(std::uint32_t(rows.sparse.columns.size()));
    rows.tags.columns.push_back(std::uint32_t(stream.below(task.outputs)));
    rows.tags.offsets.push_back(std::uint32_t(rows.tags.columns.size()));
  }
  return rows;
}

Message start(const Model& model) {
  V theta(model.size());
  model.initialise(1, theta.span());
  return from_mean(theta, kLambda);
}

}  // namespace

std::vector<Case> all_cases() {
  return {
      {"linear_small", "linear", 100, 100, 100, 20, 10, 15, 0.01, 5,
       [] { return make_linear({.features = 100, .outputs = 100}); }},
      {"linear_large", "linear", 1728, 100, 100, 20, 10, 15, 0.01, 5,
       [] { return make_linear({.features = 1728, .outputs = 100}); }},
      // The paper's client, and one of titles: short, in small batches.
      {"sparse", "linear", 10000, 500, 400, 100, 5, 5, 5.0, 50, stackoverflow, 30},
      {"sparse_titles", "linear", 10000, 500, 20, 5, 5, 5, 5.0, 50, stackoverflow, 8},
      {"cnn", "cnn", 784, 62, 100, 20, 1, 9, 0.01, 1.3,
       []() -> std::unique_ptr<Model> {
         return make_network_model(make_cnn({}), TargetKind::label);
       },
       0, false},
      {"resnet18", "resnet18", 1728, 100, 100, 20, 1, 7, 0.01, 1.3,
       []() -> std::unique_ptr<Model> {
         return make_network_model(make_resnet({}), TargetKind::label);
       },
       0, false},
  };
}

Client::Client(const Case& task)
    : task_(task),
      model_(task.model()),
      rows_(make_rows(task)),
      round_("fed_sep", {}, start(*model_)) {
  ClientRows owner;
  owner.add("client", task.examples);
  const DatasetInfo info{.name = task.name,
                         .features = {std::int64_t(task.features)},
                         .sparse = task.words > 0,
                         .target = model_->target(),
                         .outputs = task.outputs,
                         .skipped_records = 0,
                         .feature_names = {},
                         .output_names = {}};
  data_ = memory_dataset(info, {owner, batch_rows(rows_)}, {owner, batch_rows(rows_)});
  client_ = clients_of(data_->clients())[0];
  settings_.client = {.epochs = task.epochs, .batch = int(task.batch)};
  settings_.client.optimizer = {.lr = task.lr, .momentum = 0.9};
}

EagerSettings Client::peer_settings() const {
  return {.lr = task_.lr,
          .momentum = 0.9,
          .lambda = kLambda,
          .per_example = 1 / double(task_.examples)};
}

std::vector<std::vector<std::int64_t>> Client::batches() const {
  const Visit visit = round_.visit(client_, round_.task().global);
  std::vector<std::vector<std::int64_t>> all;
  for (int epoch = 0; epoch < task_.epochs; ++epoch) {
    const Minibatches of_epoch(visit_address(visit, Purpose::shuffle, std::size_t(epoch)),
                               task_.examples, 1, task_.batch, Remainder::drop);
    for (std::size_t i = 0; i < of_epoch.size(); ++i) {
      all.emplace_back(of_epoch[i].begin(), of_epoch[i].end());
    }
  }
  return all;
}

Client::Visited Client::visit() {
  Visited out{};
  run(false, out);
  out.whole = time_of([&] { run(true, out); });
  return out;
}

void Client::run(bool moments, Visited& out) {
  const Visit visit = round_.visit(client_, round_.task().global);
  const auto chain = make_chain(*model_, {*data_, 0, visit, settings_});
  const auto epochs = [&] {
    for (int epoch = 0; epoch < task_.epochs; ++epoch) {
      chain->run_epoch(epoch);
      if (moments) chain->accumulate_moments();
    }
  };
  if (!moments) {
    out.steps = time_of([&] {
      epochs();
      out.loss_sum = chain->loss_sum();  // a chain that puts its steps off makes them now
    });
    return;
  }
  epochs();
  const V mean = chain->mean();
  out.loss_sum = chain->loss_sum();
}

}  // namespace fedep
