#include "app/run/memory_warning.h"

#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "app/reproduce/test_result.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/test_folder.h"
#include "fedep/round/mean_shelf.h"

namespace fedep {
namespace {

constexpr std::size_t kClients = 500, kWeights = 11218212;  // Table 2's

Recipe fed_ep(const std::string& checkpoint = "", int rounds = 1099) {
  return parse_recipe(fmt::format(R"(
[data]
name = "synthetic"
[server]
clients_per_round = 20
factor_optimizer = {{ name = "sgd", lr = 0.5, momentum = 0.9 }}
[[phase]]
algorithm = "fed_avg"
rounds = 401
[[phase]]
algorithm = "fed_ep"
rounds = {}
[phase.inference]
name = "scaled_identity"
{})",
                                  rounds, checkpoint));
}

std::uint64_t bytes_of(const Recipe& recipe, Family family = Family::isotropic) {
  const auto phases = plan_phases(recipe, [&](std::string_view) { return family; });
  return factor_bytes(recipe, phases, kClients, std::vector<std::size_t>(phases.size(), kWeights));
}

TEST(FactorBytes, AreTheFactorAndItsMomentumOfEveryClient) {
  EXPECT_EQ(bytes_of(fed_ep()), kClients * 2 * 4 * (kWeights + 1));  // 44.9 GB
  EXPECT_EQ(bytes_of(fed_ep(), Family::diagonal), kClients * 2 * 4 * 2 * kWeights);
}

TEST(FactorBytes, CountOnlyClientsThatAreAsked) {
  EXPECT_EQ(bytes_of(fed_ep("", 3)), 60 * 2 * 4 * (kWeights + 1));
}

TEST(FactorBytes, AreNoneInFilesAndNoneWithoutFactors) {
  EXPECT_EQ(bytes_of(fed_ep("[checkpoint]\nsites = \"disk\"\n")), 0u);
  Recipe recipe = fed_ep();
  recipe.phases.pop_back();
  EXPECT_EQ(bytes_of(recipe), 0u);
}

TEST(MeanBytes, AreAMeanOfEveryRoundUpToWhatStaysInMemory) {
  auto phases = plan_phases(fed_ep(), [](std::string_view) { return Family::isotropic; });
  EXPECT_EQ(mean_bytes(phases, kWeights), 0u);  // nobody refers to them
  phases[1].shares_means = true;
  EXPECT_EQ(mean_bytes(phases, 1000), 1099u * 1000 * 4);
  EXPECT_EQ(mean_bytes(phases, kWeights), MeanShelf::kMostBytes);
}

TEST(MemoryWarning, NamesTheSettingWhereFactorsDoNotFit) {
  const std::uint64_t bytes = bytes_of(fed_ep());
  const std::string line = memory_warning(bytes, 0, 24000000000u);
  EXPECT_TRUE(has(line, "44.9 GB")) << line;
  EXPECT_TRUE(has(line, "24.0 GB")) << line;
  EXPECT_TRUE(has(line, "checkpoint.sites = \"disk\"")) << line;
  EXPECT_EQ(memory_warning(bytes, 0, bytes), "");
  EXPECT_EQ(memory_warning(bytes, 0, std::nullopt), "");
}

TEST(MemoryWarning, CountsMeansThatFactorsShareWhereverFactorsAre) {
  EXPECT_EQ(memory_warning(10, 5, 15), "");
  EXPECT_EQ(memory_warning(3000000000u, 2000000000u, 4000000000u),
            "clients' factors will take 5.0 GB (2.0 GB are q's means, in each process) of this "
            "machine's memory, of which 4.0 GB are available; checkpoint.sites = \"disk\" keeps "
            "them in files");
  // They stay in memory though the factors are in files.
  const std::string line = memory_warning(0, 2000000000u, 1000000000u);
  EXPECT_TRUE(has(line, "2.0 GB are q's means")) << line;
  EXPECT_FALSE(has(line, "checkpoint.sites")) << line;
}

TEST(AvailableMemory, IsReadWhereTheSystemSaysIt) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "meminfo";
  EXPECT_EQ(available_memory(file), std::nullopt);
  std::ofstream(file) << "MemTotal:       24689764 kB\nMemFree:  1 kB\nMemAvailable:   2048 kB\n";
  EXPECT_EQ(available_memory(file), 2048u * 1024);
  std::ofstream(file) << "MemTotal:       24689764 kB\n";
  EXPECT_EQ(available_memory(file), std::nullopt);
}

}  // namespace
}  // namespace fedep
