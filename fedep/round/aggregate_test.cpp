#include "fedep/round/aggregate.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kSize = 40;
constexpr std::size_t kClients = 25;

// Deltas of very different sizes, so that the order of a float sum shows in its last bits.
std::vector<Message> random_deltas(Family family) {
  std::vector<Message> deltas;
  for (std::uint32_t k = 0; k < kClients; ++k) {
    V eta(kSize), lambda(kSize);
    fill_normal({.seed = 1, .step = k}, eta.span());
    fill_normal({.seed = 2, .step = k}, lambda.span());
    const float scale = k % 3 == 0 ? 100.0f : 0.01f;
    deltas.push_back(
        power(family == Family::diagonal ? Message(eta, lambda) : Message(eta, lambda[0]), scale));
  }
  return deltas;
}

std::vector<GridDelta> on(const Grid& grid, const std::vector<Message>& deltas) {
  std::vector<GridDelta> out;
  for (const Message& delta : deltas) out.push_back(to_grid(grid, delta, 1.0 / kClients).value());
  return out;
}

Message sum_in(const std::vector<std::uint32_t>& order, const std::vector<Message>& deltas) {
  Message sum = flat_like(deltas[0].eta(), deltas[0].family());
  for (const std::uint32_t k : order) sum = product(sum, deltas[k]);
  return sum;
}

// A delta that is zero but for some coordinates may come as these alone.
TEST(Aggregate, PartsAreAddedWhereTheySay) {
  const std::vector<Range> where{{3, 5}, {5, 6}, {20, 40}};
  for (const Family family : {Family::diagonal, Family::isotropic}) {
    const Message delta = random_deltas(family)[1];
    const Grid grid =
        choose_grid({}, {.clip = 5000, .scale = 1, .asked = kClients, .bits = 64}, delta);
    GridDelta whole = to_grid(grid, delta, 1).value(), part = whole;
    part.where = where;
    part.eta.clear();
    if (family == Family::diagonal) part.lambda.clear();
    std::vector<bool> within(kSize, false);
    for (const Range& range : where) {
      for (std::size_t i = range.begin; i < range.end; ++i) {
        within[i] = true;
        part.eta.push_back(whole.eta[i]);
        if (family == Family::diagonal) part.lambda.push_back(whole.lambda[i]);
      }
    }
    for (std::size_t i = 0; i < kSize; ++i) {
      if (within[i]) continue;
      whole.eta[i] = 0;
      if (family == Family::diagonal) whole.lambda[i] = 0;
    }
    Aggregate by_part(grid, kSize, family), by_whole(grid, kSize, family);
    for (int times = 0; times < 2; ++times) {
      by_part.add(part);
      by_whole.add(whole);
    }
    EXPECT_EQ(by_part.units(), by_whole.units());
    for (const std::vector<Range>& wrong : {std::vector<Range>{{3, 5}},
                                            {{20, 40}, {3, 6}},
                                            {{3, 6}, {21, 41}},
                                            {{3, 6}, {20, 20}, {20, 40}}}) {
      GridDelta other = part;
      other.where = wrong;
      EXPECT_THROW(by_part.add(other), InputError);
    }
    EXPECT_EQ(by_part.units(), by_whole.units());
  }
}

TEST(Aggregate, AnyOrderAndAnyGroupingGiveTheSameBits) {
  for (const Family family : {Family::diagonal, Family::isotropic}) {
    for (const int bits : {64, 32}) {
      const std::vector<Message> deltas = random_deltas(family);
      const Grid grid = choose_grid(
          {}, {.clip = 5000, .scale = 1.0 / kClients, .asked = kClients, .bits = bits}, deltas[0]);
      const std::vector<GridDelta> sent = on(grid, deltas);
      Aggregate in_order(grid, kSize, family);
      for (const GridDelta& delta : sent) in_order.add(delta);
      bool float_sums_agree = true;
      for (std::uint32_t trial = 0; trial < 20; ++trial) {
        Stream stream({.seed = 9, .step = trial});
        const std::vector<std::uint32_t> order = permutation(stream, kClients);
        std::vector<Aggregate> workers(1 + trial % 5, Aggregate(grid, kSize, family));
        for (const std::uint32_t k : order) workers[stream.below(workers.size())].add(sent[k]);
        Aggregate all = workers.back();
        for (std::size_t w = 0; w + 1 < workers.size(); ++w) all.merge(workers[w]);
        EXPECT_EQ(all.units(), in_order.units());
        EXPECT_EQ(all.total(), in_order.total());
        EXPECT_EQ(all.deltas(), kClients);
        std::vector<std::uint32_t> sorted = order;
        std::sort(sorted.begin(), sorted.end());
        float_sums_agree &= sum_in(order, deltas) == sum_in(sorted, deltas);
      }
      EXPECT_FALSE(float_sums_agree);  // or this test could not fail
    }
  }
}

TEST(Aggregate, TheSumOfNothingIsFlat) {
  const Grid grid = choose_grid({}, {}, Message(V{1, 1}, 1.0f));
  EXPECT_EQ(Aggregate(grid, 2, Family::diagonal).total(), flat_like(V(2), Family::diagonal));
  EXPECT_EQ(Aggregate(grid, 2, Family::isotropic).total(), flat_like(V(2), Family::isotropic));
}

TEST(Aggregate, HoldsEveryClientAtTheLimit) {
  for (const int bits : {64, 32}) {
    for (const std::size_t asked : {1u, 3u, 1000u}) {
      const Grid grid = choose_grid({}, {.asked = asked, .bits = bits}, Message(V{1}, 1.0f));
      Aggregate up(grid, 1, Family::isotropic), down = up;
      for (std::size_t k = 0; k < asked; ++k) {
        up.add({Family::isotropic, {grid.limit}, {grid.limit}});
        down.add({Family::isotropic, {-grid.limit}, {-grid.limit}});
      }
      EXPECT_EQ(up.units().eta[0], grid.limit * std::int64_t(asked));
      EXPECT_EQ(down.units().lambda[0], -grid.limit * std::int64_t(asked));
      EXPECT_LE(up.units().eta[0], std::int64_t(1) << (bits - 2));
      up.merge(down);
      EXPECT_EQ(up.total(), flat_like(V(1), Family::isotropic));
    }
  }
}

TEST(Aggregate, RefusesADeltaThatLiesAndStaysAsItWas) {
  const Grid grid = choose_grid({}, {.asked = 3}, Message(V{1, 1}, V{1, 1}));
  Aggregate sum(grid, 2, Family::diagonal);
  sum.add({Family::diagonal, {1, 2}, {3, 4}});
  const GridDelta before = sum.units();
  const std::int64_t beyond = grid.limit + 1;
  const std::int64_t least = std::numeric_limits<std::int64_t>::min();
  const std::vector<GridDelta> lies{
      {Family::diagonal, {1, beyond}, {1, 1}},  {Family::diagonal, {1, 1}, {-beyond, 1}},
      {Family::diagonal, {least, 1}, {1, 1}},   {Family::diagonal, {1}, {1, 1}},
      {Family::diagonal, {1, 1, 1}, {1, 1, 1}}, {Family::diagonal, {1, 1}, {1}},
      {Family::isotropic, {1, 1}, {1}},         {Family::diagonal, {}, {}}};
  for (const GridDelta& lie : lies) {
    EXPECT_THROW(sum.add(lie), InputError);
    EXPECT_EQ(sum.units(), before);
    EXPECT_EQ(sum.deltas(), 1u);
  }
}

TEST(Aggregate, MergesOnlySumsOfOneRound) {
  const Grid grid = choose_grid({}, {.asked = 3}, Message(V{1, 1}, 1.0f));
  Grid other = grid;
  ++other.lambda_exponent;
  Aggregate sum(grid, 2, Family::isotropic);
  EXPECT_THROW(sum.merge(Aggregate(other, 2, Family::isotropic)), InputError);
  EXPECT_THROW(sum.merge(Aggregate(grid, 3, Family::isotropic)), InputError);
  EXPECT_THROW(sum.merge(Aggregate(grid, 2, Family::diagonal)), InputError);
}

}  // namespace
}  // namespace fedep
