#include "fedep/store/checkpoint.h"

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

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
  out.state.grid = {.largest_eta = 0.1, .largest_lambda = 0.7, .extra_bits = 16};
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

}  // namespace
}  // namespace fedep
