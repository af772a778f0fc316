#include "app/sweep/grid.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::ElementsAre;

std::vector<std::string> names_of(std::vector<GridKey> grid) {
  std::vector<std::string> names;
  for (const Cell& cell : cells_of(grid)) names.push_back(cell.name());
  return names;
}

TEST(Grid, IsAKeyAndItsValues) {
  EXPECT_EQ(parse_grid_key("client.epochs=1,5, 10"), (GridKey{"client.epochs", {"1", "5", "10"}}));
  EXPECT_EQ(parse_grid_key("server.damping=1/K"), (GridKey{"server.damping", {"1/K"}}));
}

TEST(Grid, CommasInsideListsTablesAndTextsSeparateNothing) {
  EXPECT_THAT(parse_grid_key(R"(a=["x, y","z"],{mean=0, precision=2},"p, q")").values,
              ElementsAre(R"(["x, y","z"])", "{mean=0, precision=2}", R"("p, q")"));
}

TEST(Grid, HasEveryCombinationOnce) {
  EXPECT_THAT(names_of({{"a", {"1", "2"}}, {"b", {"x", "y"}}}),
              ElementsAre("a=1, b=x", "a=1, b=y", "a=2, b=x", "a=2, b=y"));
  EXPECT_THAT(names_of({}), ElementsAre(""));
}

TEST(Grid, RefusesWhatIsNoGrid) {
  for (const char* text : {"client.epochs", "=1,2", "", "a=1,,2", "a=", "a=1,1"}) {
    EXPECT_THROW(parse_grid_key(text), InputError) << text;
  }
  EXPECT_THROW(names_of({{"a", {"1"}}, {"a", {"2"}}}), InputError);
}

}  // namespace
}  // namespace fedep
