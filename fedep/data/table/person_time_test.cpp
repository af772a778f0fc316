#include "fedep/data/table/person_time.h"

#include <cmath>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using testing::ElementsAre;

double exposure(const std::vector<Piece>& pieces) {
  double sum = 0;
  for (const Piece& piece : pieces) sum += piece.exposure;
  return sum;
}

TEST(PiecesOf, ASpellAddUpToItAndLieWithinTheirIntervals) {
  const std::vector<double> cuts{0.5, 2, 3.25};
  Stream stream({.seed = 7, .purpose = Purpose::partition});
  for (int i = 0; i < 200; ++i) {
    const double start = 4 * stream.uniform(), stop = start + 3 * stream.uniform() + 1e-9;
    const std::vector<Piece> pieces = pieces_of(start, stop, cuts);
    EXPECT_NEAR(exposure(pieces), stop - start, 1e-12);
    double at = start;
    for (const Piece& piece : pieces) {
      ASSERT_LE(piece.interval, cuts.size());
      EXPECT_GT(piece.exposure, 0);
      EXPECT_GE(at, piece.interval > 0 ? cuts[piece.interval - 1] - 1e-12 : 0);
      at += piece.exposure;
      EXPECT_LE(at, piece.interval < cuts.size() ? cuts[piece.interval] + 1e-12 : 8);
    }
    for (std::size_t j = 1; j < pieces.size(); ++j) {
      EXPECT_EQ(pieces[j].interval, pieces[j - 1].interval + 1);
    }
  }
}

TEST(PiecesOf, AnIntervalBeginsAfterItsCutAndHasItsEnd) {
  const std::vector<double> cuts{10, 20};
  EXPECT_THAT(pieces_of(0, 10, cuts), ElementsAre(Piece{0, 10}));
  EXPECT_THAT(pieces_of(10, 20, cuts), ElementsAre(Piece{1, 10}));
  EXPECT_THAT(pieces_of(5, 25, cuts), ElementsAre(Piece{0, 5}, Piece{1, 10}, Piece{2, 5}));
  EXPECT_THAT(pieces_of(30, 31, cuts), ElementsAre(Piece{2, 1}));
  EXPECT_THAT(pieces_of(-1, 1, cuts), ElementsAre(Piece{0, 2}));
  EXPECT_THAT(pieces_of(0, 3, {}), ElementsAre(Piece{0, 3}));
  EXPECT_THROW(pieces_of(3, 3, cuts), InputError);
  EXPECT_THROW(pieces_of(4, 3, cuts), InputError);
}

TEST(TimeGrid, HasWholeNumbersOnItAndStepsEnough) {
  for (const double most : {365.0, 30.0, 3650.0, 0.7, 1e6, 1e-3}) {
    const TimeGrid grid = common_grid(0, most);
    EXPECT_GE(double(grid.steps), 2000) << most;
    EXPECT_LE(double(grid.steps), 5100) << most;
    EXPECT_NO_THROW(grid.place_of(most));
    EXPECT_NO_THROW(grid.place_of(most * 1e-9));
    EXPECT_THROW(grid.place_of(most * 1.1), InputError);
  }
  const TimeGrid days = common_grid(0, 365);
  EXPECT_EQ(days.at(1), 0.1);
  for (int day = 1; day <= 365; ++day) {
    EXPECT_EQ(days.end_of(days.place_of(day)), day);  // to the last bit
    EXPECT_GT(days.end_of(days.place_of(day + 0.05)), day + 0.05);
  }
  EXPECT_THROW(common_grid(1, 1), InputError);
}

std::vector<double> cuts(const std::vector<double>& times, std::size_t intervals) {
  const TimeGrid grid = common_grid(0, 100);
  return cuts_of(grid, event_counts(grid, times), intervals);
}

TEST(CutsOf, EventsAreAtTheirQuantiles) {
  std::vector<double> times(1000);
  for (std::size_t i = 0; i < times.size(); ++i)
    times[i] = 100 * std::pow((double(i) + 0.5) / 1000, 2);
  const std::vector<double> found = cuts(times, 10);
  ASSERT_EQ(found.size(), 9u);
  for (std::size_t j = 0; j < 9; ++j) {
    const double part = double(j + 1) / 10;
    EXPECT_NEAR(found[j], 100 * part * part, 0.1);
    const auto below = std::ranges::count_if(times, [&](double t) { return t <= found[j]; });
    EXPECT_NEAR(double(below), 1000 * part, 5);
  }
}

// Each client counts its own, and the sum is all that is read.
TEST(CutsOf, DoNotDependOnWhoHasWhichEvents) {
  const TimeGrid grid = common_grid(0, 100);
  std::vector<double> all, sum(grid.steps);
  for (int client = 0; client < 3; ++client) {
    std::vector<double> own;
    for (int i = 0; i < 20 + 30 * client; ++i)
      own.push_back(double(1 + (i * 37 + client * 11) % 99));
    all.insert(all.end(), own.begin(), own.end());
    const std::vector<double> counts = event_counts(grid, own);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += counts[k];
  }
  EXPECT_EQ(cuts_of(grid, sum, 10), cuts(all, 10));
}

TEST(CutsOf, AreFewerWhereEventsShareTheirTimes) {
  EXPECT_THAT(cuts({5, 5, 5, 5, 9, 9, 9, 9}, 10), ElementsAre(5));
  EXPECT_TRUE(cuts({5, 5, 5}, 10).empty());
  EXPECT_TRUE(cuts({}, 10).empty());
  EXPECT_TRUE(cuts({1, 2, 3, 4}, 1).empty());
  EXPECT_THAT(cuts({1, 2, 3, 4}, 10), ElementsAre(1, 2, 3));
  EXPECT_THAT(cuts({1, 2, 3, 4}, 2), ElementsAre(2));
}

TEST(OverlapOf, SpellsIsFoundWhateverTheirOrder) {
  EXPECT_FALSE(overlap_of({}).there);
  EXPECT_FALSE(overlap_of({{0, 5, 2}}).there);
  EXPECT_FALSE(overlap_of({{5, 9, 2}, {0, 5, 3}, {12, 13, 4}}).there);
  const Overlap inside = overlap_of({{0, 20, 2}, {3, 4, 3}, {5, 6, 4}});
  EXPECT_TRUE(inside.there);
  EXPECT_EQ(inside.one.place, 2u);
  EXPECT_EQ(inside.other.place, 3u);
  const Overlap later = overlap_of({{4, 9, 7}, {0, 20, 8}, {30, 31, 9}});
  EXPECT_EQ(later.one.place, 7u);
  EXPECT_EQ(later.other.place, 8u);
  EXPECT_TRUE(overlap_of({{1, 2, 1}, {1, 2, 2}}).there);
}

}  // namespace
}  // namespace fedep
