#include "fedep/data/partition.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include <gtest/gtest.h>

#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// 20 coarse labels with 5 fine ones each, `each` examples a fine label: CIFAR-100's tree.
struct Tree {
  std::vector<std::int32_t> coarse, fine;
};
Tree make_tree(int each) {
  Tree tree;
  for (int i = 0; i < each * 100; ++i) {
    tree.fine.push_back(i % 100);
    tree.coarse.push_back(i % 100 / 5);
  }
  return tree;
}

struct Kind {
  const char* name;
  std::function<Partition(const Tree&, const PartitionPlan&)> draw;
};
const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"iid",
       [](const Tree& t, const PartitionPlan& p) { return iid_partition(t.fine.size(), p); }},
      {"dirichlet",
       [](const Tree& t, const PartitionPlan& p) { return dirichlet_partition(t.fine, 0.1, p); }},
      {"pachinko",
       [](const Tree& t, const PartitionPlan& p) {
         return pachinko_partition(t.coarse, t.fine, 0.1, 10.0, p);
       }},
  };
  return all;
}

TEST(Partition, EveryExampleGoesToExactlyOneClientAndSizesAreEqual) {
  const Tree tree = make_tree(7);
  for (const Kind& kind : kinds()) {
    for (const std::size_t clients : {1, 3, 70, 700}) {
      const Partition parts = kind.draw(tree, {.clients = clients, .seed = 4});
      ASSERT_EQ(parts.size(), clients);
      std::set<std::uint32_t> used;
      for (const auto& part : parts) {
        EXPECT_GE(part.size(), 700 / clients) << kind.name;
        EXPECT_LE(part.size(), 700 / clients + 1) << kind.name;
        for (const std::uint32_t example : part) {
          EXPECT_TRUE(used.insert(example).second) << kind.name;
          EXPECT_LT(example, 700u);
        }
      }
      EXPECT_EQ(used.size(), 700u) << kind.name;
    }
  }
}

TEST(Partition, ASeedRepeatsAndAnotherSeedOrPartDiffers) {
  const Tree tree = make_tree(7);
  for (const Kind& kind : kinds()) {
    const Partition parts = kind.draw(tree, {.clients = 10, .seed = 4});
    EXPECT_EQ(kind.draw(tree, {.clients = 10, .seed = 4}), parts);
    EXPECT_NE(kind.draw(tree, {.clients = 10, .seed = 5}), parts);
    EXPECT_NE(kind.draw(tree, {.clients = 10, .seed = 4, .part = 1}), parts);
  }
}

TEST(Partition, MoreClientsThanExamplesOrNoneAreRefused) {
  const Tree tree = make_tree(1);
  for (const Kind& kind : kinds()) {
    EXPECT_THROW(kind.draw(tree, {.clients = 101}), InputError);
    EXPECT_THROW(kind.draw(tree, {.clients = 0}), InputError);
  }
}

// Largest share of one label in a client, averaged over clients.
double mean_top_share(const Partition& parts, const std::vector<std::int32_t>& labels) {
  double sum = 0;
  for (const auto& part : parts) {
    std::vector<double> counts(200);
    for (const std::uint32_t example : part) ++counts[std::size_t(labels[example])];
    sum += *std::max_element(counts.begin(), counts.end()) / double(part.size());
  }
  return sum / double(parts.size());
}

TEST(Dirichlet, ALargeConcentrationIsLikeIid) {
  // Labels 0, 1, 2 with frequencies 1/2, 1/3, 1/6.
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 60000; ++i) labels.push_back(i % 6 < 3 ? 0 : i % 6 < 5 ? 1 : 2);
  const Partition parts = dirichlet_partition(labels, 1e5, {.clients = 20, .seed = 1});
  for (const auto& part : parts) {
    std::vector<double> shares(3);
    for (const std::uint32_t e : part) shares[std::size_t(labels[e])] += 1.0 / double(part.size());
    EXPECT_NEAR(shares[0], 0.5, 0.04);  // 4 standard deviations of 3,000 draws
    EXPECT_NEAR(shares[1], 1.0 / 3, 0.035);
    EXPECT_NEAR(shares[2], 1.0 / 6, 0.03);
  }
}

TEST(Dirichlet, ASmallConcentrationGivesClientsFewLabels) {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 10000; ++i) labels.push_back(i % 10);
  const PartitionPlan plan{.clients = 100, .seed = 1};
  const double spread = mean_top_share(dirichlet_partition(labels, 100, plan), labels);
  const double middle = mean_top_share(dirichlet_partition(labels, 0.3, plan), labels);
  const double narrow = mean_top_share(dirichlet_partition(labels, 0.01, plan), labels);
  EXPECT_LT(spread, 0.25);
  EXPECT_GT(middle, spread + 0.1);
  EXPECT_GT(narrow, 0.85);
}

TEST(Dirichlet, WhatUnderflowsIsStillGivenOut) {
  // Weights of Dirichlet(1e-5) are far below the smallest double.
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 1000; ++i) labels.push_back(i % 10);
  const Partition parts = dirichlet_partition(labels, 1e-5, {.clients = 4, .seed = 1});
  for (const auto& part : parts) EXPECT_EQ(part.size(), 250u);
}

TEST(Pachinko, CoarseLabelsFollowTheirDirichletLaw) {
  // Two draws of one client share their coarse label with probability (a + 1)/(20 a + 1), which is
  // 0.367 for a = 0.1. The first clients still find every label.
  const Tree tree = make_tree(500);
  const Partition parts =
      pachinko_partition(tree.coarse, tree.fine, 0.1, 10.0, {.clients = 500, .seed = 1});
  double coarse_pairs = 0;
  double fine_pairs = 0;
  for (std::size_t c = 0; c < 150; ++c) {
    ASSERT_EQ(parts[c].size(), 100u);
    std::vector<double> coarse(20), fine(100);
    for (const std::uint32_t e : parts[c]) {
      ++coarse[std::size_t(tree.coarse[e])];
      ++fine[std::size_t(tree.fine[e])];
    }
    for (const double n : coarse) coarse_pairs += n * (n - 1);
    for (const double n : fine) fine_pairs += n * (n - 1);
  }
  EXPECT_NEAR(coarse_pairs / (150 * 100 * 99), 1.1 / 3.0, 0.05);
  // Within a coarse label the five fine ones agree with probability 11/51.
  EXPECT_NEAR(fine_pairs / coarse_pairs, 11.0 / 51.0, 0.02);
}

TEST(Pachinko, LabelsThatRunOutLeaveAndTheRestIsRenormalised) {
  // Coarse label 0 has 2 + 1 examples, coarse label 1 has 97: whatever the law, one client gets
  // all.
  std::vector<std::int32_t> fine(100, 2), coarse(100, 1);
  fine[0] = fine[1] = 0;
  fine[2] = 1;
  coarse[0] = coarse[1] = coarse[2] = 0;
  for (std::uint64_t seed = 1; seed < 20; ++seed) {
    const Partition parts = pachinko_partition(coarse, fine, 0.1, 10, {.clients = 1, .seed = seed});
    EXPECT_EQ(std::set<std::uint32_t>(parts[0].begin(), parts[0].end()).size(), 100u);
  }
}

TEST(Pachinko, AFineLabelBelowTwoCoarseOnesIsRefused) {
  const std::vector<std::int32_t> fine{0, 1, 0}, coarse{0, 0, 1};
  const std::string message = message_of<InputError>(
      [&] { pachinko_partition(coarse, fine, 0.1, 10, {.clients = 1, .seed = 1}); });
  EXPECT_NE(message.find("coarse label of fine label 0 must be 0 everywhere, but is 1"),
            std::string::npos)
      << message;
}

TEST(GivenPartition, IsReadClientByClient) {
  const TemporaryFolder folder;
  folder.write("p.i32", std::vector<std::uint8_t>{1, 0, 0, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0});
  const Partition parts = read_partition("test", folder.path() / "p.i32", 2, 300);
  EXPECT_EQ(parts, (Partition{{1, 256}, {2, 0}}));
}

TEST(GivenPartition, WhatDoesNotFitIsRefused) {
  const TemporaryFolder folder;
  const auto refusal = [&](const std::vector<std::uint8_t>& bytes, std::size_t per_client) {
    folder.write("p.i32", bytes);
    return message_of<InputError>(
        [&] { read_partition("test", folder.path() / "p.i32", per_client, 300); });
  };
  EXPECT_NE(refusal({1, 0, 0, 0, 2, 0, 0}, 1).find("multiple of 4 bytes"), std::string::npos);
  EXPECT_NE(refusal({1, 0, 0, 0, 2, 0, 0, 0}, 3).find("multiple of 12 bytes"), std::string::npos);
  EXPECT_NE(refusal({}, 1).find("but is 0 bytes"), std::string::npos);
  EXPECT_NE(refusal({1, 0, 0, 0}, 0), "");
  EXPECT_NE(refusal({44, 1, 0, 0}, 1).find("entry 0 must be in [0, 300), but is 300"),
            std::string::npos);
  EXPECT_NE(refusal({255, 255, 255, 255}, 1).find("but is -1"), std::string::npos);
  EXPECT_NE(refusal({7, 0, 0, 0, 7, 0, 0, 0}, 1).find("not given out before, but is 7"),
            std::string::npos);
  EXPECT_THROW(read_partition("test", folder.path() / "none.i32", 1, 300), InputError);
}

TEST(Partition, ClientsCanBeLimited) {
  Partition parts{{1}, {}, {2, 3, 4}, {5, 6}};
  EXPECT_EQ(limit_clients(parts, {.min_examples = 2, .max_examples = 2}),
            (std::vector<std::size_t>{2, 3}));
  EXPECT_EQ(parts, (Partition{{2, 3}, {5, 6}}));
  Partition other{{1}, {}, {2}};
  EXPECT_EQ(limit_clients(other, {}), (std::vector<std::size_t>{0, 2}));
}

TEST(Partition, TestClientsAreAsLargeAsTrainingClients) {
  EXPECT_EQ(test_client_count(500, 50000, 10000), 100u);
  EXPECT_EQ(test_client_count(2, 50000, 10), 1u);
  EXPECT_EQ(test_client_count(2, 50000, 0), 0u);
}

}  // namespace
}  // namespace fedep
