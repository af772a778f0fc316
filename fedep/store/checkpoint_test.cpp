#include "fedep/store/checkpoint.h"

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/random/stream.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

using V = HostVector<float>;

const Layout kLayout{{"weight", {2, 2}}, {"bias", {1}}};

// Five coordinates with numbers of their own, so that nothing can stand for anything else.
Message message(Family family, float first) {
  V eta(5), lambda(5);
  for (std::size_t i = 0; i < 5; ++i) {
    eta[i] = first + 0.125f * float(i);
    lambda[i] = 1 / eta[i];
  }
  if (family == Family::isotropic) return {eta, lambda[4]};
  return {eta, lambda};
}

Checkpoint everything(Family family) {
  Checkpoint out;
  out.state.round = 12;
  out.state.phase = 1;
  out.state.initial = message(family, 7).eta();
  out.state.prior = message(family, 1);
  out.state.global = message(family, 2);
  out.state.optimizer = {.steps = 9, .slots = {message(family, 3), message(family, 4)}};
  out.state.unvisited.per_example = message(family, 5);
  out.state.factors = message(family, 9);
  out.state.step_scales = {1, 1.0 / 3, 0.064};
  out.state.grid = {.largest_eta = 0.1, .largest_lambda = 0.7, .extra_bits = 16};
  out.state.average = {.rounds = 4,
                       .mean = message(family, 10).eta(),
                       .variance = message(family, 11).eta(),
                       .lambda = {},
                       .lambda_number = 0};
  if (family == Family::isotropic) {
    out.state.average.lambda_number = 0.3f;
  } else {
    out.state.average.lambda = message(family, 12).eta();
  }
  out.state.temperatures = {
      .round = 11, .point = 1.5, .marginal = 0.75, .average = 1.25, .average_marginal = 0.875};
  out.state.convergence.begun = 8;
  out.state.convergence.lost = 1;
  out.state.convergence.mean = message(family, 6).eta();
  out.state.convergence.deviation = message(family, 8).eta();
  out.state.convergence.latest = 0.1;  // and none before: infinity
  out.state.convergence.mean_at = {.coordinate = 2, .by = -0.1 / 3};
  out.state.convergence.log_sd_at = {.coordinate = 1, .by = 0.02};
  out.state.convergence.left_latest = 0.1 + 0.2;
  out.recipe = "seed = 3\n";
  out.slots = {"first_moment", "second_moment"};
  return out;
}

TEST(Checkpoint, GivesBackEveryPartOfTheServersState) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint-12.safetensors";
  for (const Family family : {Family::isotropic, Family::diagonal}) {
    const Checkpoint written = everything(family);
    write_checkpoint(path, written, kLayout);
    const Checkpoint read = read_checkpoint(path, kLayout);
    EXPECT_EQ(read.state.prior, written.state.prior);
    EXPECT_EQ(read.state, written.state);
    EXPECT_EQ(read.recipe, written.recipe);
    EXPECT_EQ(read.slots, written.slots);
  }
}

TEST(Checkpoint, OfAnotherModelIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "checkpoint-12.safetensors";
  write_checkpoint(path, everything(Family::diagonal), kLayout);
  EXPECT_THROW(read_checkpoint(path, {{"weight", {4, 1}}, {"bias", {1}}}), InputError);
  EXPECT_THROW(read_checkpoint(path, {{"weight", {2, 2}}}), InputError);
}

Message random_message(std::size_t d, Family family, std::uint32_t step) {
  Stream stream({.seed = 4, .step = step});
  Message out = flat_like(V(d), family);
  for (float& x : out.eta().span()) x = float(stream.normal());
  for (float& x : out.lambda_span()) x = float(stream.normal());
  return out;
}

Checkpoint random_checkpoint(std::size_t d, Family family) {
  Checkpoint out;
  out.state.round = 7;
  out.state.phase = 1;
  out.state.initial = random_message(d, family, 1).eta();
  out.state.prior = random_message(d, family, 2);
  out.state.global = random_message(d, family, 3);
  out.state.unvisited.per_example = random_message(d, family, 4);
  out.state.grid = {.largest_eta = 0.1, .largest_lambda = 3, .extra_bits = 16};
  out.sites = {{12, 3}, {99, 6}};
  out.recipe = "seed = 1\n";
  out.log = 0xabcdef;
  out.seals = {{12, 7}, {99, 8}};
  return out;
}

Layout linear_of(std::int64_t features) {
  Layout layout;
  if (features > 0) layout.push_back({"weight", {features, 1}});
  layout.push_back({"bias", {1}});
  return layout;
}

TEST(Checkpoint, ComesBackInEveryBitWhateverTheFamily) {
  const TemporaryFolder folder;
  for (const std::int64_t features : {0, 1, 4}) {  // a single weight too: no family is another
    for (const Family family : {Family::isotropic, Family::diagonal, Family::full}) {
      const Layout layout = linear_of(features);
      const Checkpoint kept = random_checkpoint(size_of(layout), family);
      const auto path = folder.path() / "checkpoint.safetensors";
      write_checkpoint(path, kept, layout);
      EXPECT_EQ(read_checkpoint(path, layout), kept);
    }
  }
}

TEST(Checkpoint, HasTheLowerTriangleOfAFullPrecisionAsOneTensor) {
  const TemporaryFolder folder;
  const Layout layout = linear_of(2);
  Checkpoint kept = random_checkpoint(3, Family::full);
  const auto path = folder.path() / "checkpoint.safetensors";
  write_checkpoint(path, kept, layout);
  const SafetensorsFile file = read_safetensors(path);
  EXPECT_EQ(file.tensor("lambda").shape, (std::vector<std::int64_t>{6}));
  EXPECT_EQ(V(file.get<float>("lambda")), kept.state.global.lambda_packed().elements);
  EXPECT_THROW(read_checkpoint(path, linear_of(3)), InputError);
}

}  // namespace
}  // namespace fedep
