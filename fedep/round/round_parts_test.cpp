#include "fedep/round/round_parts.h"

#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/round/population.h"

namespace fedep {
namespace {

using Asked = std::vector<std::size_t>;

TEST(Population, FindsClientsByTheirKeys) {
  std::vector<std::pair<std::string, std::size_t>> ids;
  for (int k = 0; k < 1000; ++k) ids.emplace_back(std::to_string(k), 1);
  const Population population = make_population(ids);
  for (std::size_t k = 0; k < population.size(); ++k) {
    EXPECT_EQ(population.find(population[k].key), k);
  }
  EXPECT_THROW(population.find(population[0].key + 1), InputError);
  ids.emplace_back("77", 2);
  EXPECT_THROW(make_population(ids), InputError);
}

Population three_clients() { return make_population({{"a", 10}, {"b", 30}, {"c", 60}}); }

const std::vector<Asked> kWhoever{{0}, {0, 2}, {1, 2}, {0, 1, 2}};

// What a client takes out of q in place of a factor is its part of all data, so the shares of those
// asked add up to one only if all are.
TEST(MakeTasks, AShareIsOfEverybodysExamplesWhoeverIsAsked) {
  const Population population = three_clients();
  Phase phase{.cavity = CavityKind::share, .share = ShareRule::examples};
  for (const Asked& asked : kWhoever) {
    const std::vector<ClientTask> tasks = make_tasks(asked, phase, population);
    ASSERT_EQ(tasks.size(), asked.size());
    for (const ClientTask& task : tasks) {
      EXPECT_DOUBLE_EQ(task.share, double(population[task.client].examples) / 100);
    }
  }
}

TEST(MakeTasks, AnEqualShareIsOfAllClientsWhoeverIsAsked) {
  const Phase phase{.cavity = CavityKind::share, .share = ShareRule::equal};
  for (const Asked& asked : kWhoever) {
    for (const ClientTask& task : make_tasks(asked, phase, three_clients())) {
      EXPECT_DOUBLE_EQ(task.share, 1.0 / 3);
    }
  }
}

TEST(MakeTasks, WeightsByExamplesAreSharesOfThoseAsked) {
  const Population population = three_clients();
  const Phase phase{.weight = WeightRule::examples};
  for (const Asked& asked : kWhoever) {
    double examples = 0, sum = 0;
    for (const std::size_t client : asked) examples += double(population[client].examples);
    for (const ClientTask& task : make_tasks(asked, phase, population)) {
      EXPECT_DOUBLE_EQ(task.weight, double(population[task.client].examples) / examples);
      sum += task.weight;
    }
    EXPECT_DOUBLE_EQ(sum, 1);
  }
}

}  // namespace
}  // namespace fedep
