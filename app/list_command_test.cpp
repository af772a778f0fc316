#include "app/list_command.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/algorithm/algorithm.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/data/registry.h"
#include "fedep/inference/method.h"
#include "fedep/message/table.h"
#include "fedep/model/registry.h"
#include "fedep/optim/optimizer.h"
#include "fedep/sim/place/places.h"
#include "fedep/sim/toy/toy_task.h"

namespace fedep {
namespace {

using testing::HasSubstr;

template <class Table>
void expect_listed(std::string_view what, const Table& table) {
  const std::string text = list_text(what);
  EXPECT_THAT(list_text(""), HasSubstr(text));
  for (const auto& row : table) {
    EXPECT_THAT(text, HasSubstr("\n  " + std::string(row.name) + " "));
    EXPECT_THAT(text, HasSubstr(std::string(row.summary)));
  }
}

TEST(List, ShowsEveryRowOfEveryTable) {
  expect_listed("algorithms", algorithms());
  expect_listed("inference", methods());
  expect_listed("inference", toy_methods());
  expect_listed("models", models());
  expect_listed("data", datasets());
  expect_listed("partitions", partition_kinds());
  expect_listed("optimizers", optimizers());
  expect_listed("places", places());
}

TEST(List, OfAnUnknownTableNamesThoseThereAre) {
  try {
    list_text("modells");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("unknown listing modells; did you mean models?"));
  }
}

}  // namespace
}  // namespace fedep
