#include "fedep/cuda/round/device_sites.h"

#include <map>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "fedep/cuda/device/vector_kernels.h"
#include "fedep/random/stream.h"

namespace fedep {
namespace {

using V = HostVector<float>;

constexpr std::size_t kSize = 3001;
constexpr std::uint64_t kClients = 12;

// Where files would be.
class InMemory final : public SiteArchive {
 public:
  void write(std::uint64_t client, std::int64_t round, const StoredSite& state) override {
    states_.insert_or_assign({client, round}, state);
  }
  StoredSite read(std::uint64_t client, std::int64_t round) const override {
    return states_.at({client, round});
  }
  bool has(std::uint64_t client, std::int64_t round) const override {
    return states_.contains({client, round});
  }
  void keep_only(std::span<const SiteManifest>) override {}

 private:
  std::map<std::pair<std::uint64_t, std::int64_t>, StoredSite> states_;
};

// Every array of a state holds one value: how often the client was taken.
float value_of(DeviceSite& site, const SiteShape& shape) {
  float value = 0;
  copy_to_host(&value, site.eta(shape, 0) + kSize - 1, sizeof value);
  return value;
}

void set(DeviceSite& site, const SiteShape& shape, float value) {
  launch_fill(site.values.data(), value, shape.floats(), device_stream());
  for (float& number : site.numbers) number = value;
}

// What a round does with the sites: three clients, each state goes up by one.
std::vector<std::uint64_t> asked(std::int64_t round) {
  Stream stream({.seed = 4, .round = std::uint32_t(round)});
  std::vector<std::uint64_t> clients;
  for (const std::size_t k : sample_without_replacement(stream, kClients, 3)) clients.push_back(k);
  return clients;
}

class Sites : public testing::TestWithParam<std::tuple<Family, std::size_t>> {
 protected:
  void SetUp() override {
    if (const std::string why = device_problem(); !why.empty()) GTEST_SKIP() << why;
    shape = {.size = kSize, .family = std::get<0>(GetParam()), .slots = 1};
  }

  std::size_t room() const { return std::get<1>(GetParam()) * shape.bytes(); }

  // `lost`: its delta is not taken.
  void play(DeviceSites& sites, std::int64_t round, std::vector<float>& counts,
            std::optional<std::uint64_t> lost = {}) {
    sites.begin(shape, round);
    std::vector<DeviceSite*> own;
    for (const std::uint64_t client : asked(round)) {
      DeviceSite* site = sites.find(client);
      EXPECT_EQ(site != nullptr, counts[client] > 0) << client;
      if (site == nullptr) set(*(site = &sites.add(client)), shape, 0);
      own.push_back(site);
    }
    sites.prefetch(asked(round + 1));
    std::vector<std::uint64_t> taken;
    std::size_t k = 0;
    for (const std::uint64_t client : asked(round)) {
      DeviceSite& site = *own[k++];
      EXPECT_EQ(value_of(site, shape), counts[client]) << "client " << client << " round " << round;
      if (client == lost) continue;
      set(site, shape, ++counts[client]);
      ++site.steps;
      taken.push_back(client);
    }
    sites.end(taken);
  }

  SiteState state(float count) const {
    const V values(kSize, count);
    const Message m =
        shape.family == Family::diagonal ? Message(values, values) : Message(values, count);
    return {.factor = m, .optimizer = {.steps = std::int64_t(count), .slots = {m}}};
  }

  SiteShape shape;
};

TEST_P(Sites, RememberWhatEveryClientLeft) {
  const auto home = make_memory_store();
  DeviceSites sites(*home, room());
  std::vector<float> counts(kClients, 0);
  for (std::int64_t round = 0; round < 40; ++round) play(sites, round, counts);
  for (std::uint64_t client = 0; client < kClients; ++client) {
    ASSERT_GT(counts[client], 0);
    EXPECT_EQ(sites.get(client), state(counts[client])) << client;
    EXPECT_FALSE(home->get(client).has_value());
  }
  EXPECT_EQ(sites.visited(), kClients);
  EXPECT_EQ(sites.in_gpu_memory(), std::min<std::size_t>(std::get<1>(GetParam()), kClients));
  EXPECT_EQ(sites.in_gpu_memory() + sites.in_main_memory(), kClients);
}

TEST_P(Sites, AClientWhoseDeltaWasNotTakenIsWhereItWas) {
  const auto home = make_memory_store();
  DeviceSites sites(*home, room());
  std::vector<float> counts(kClients, 0);
  const std::uint64_t lost = asked(0)[1];
  for (std::int64_t round = 0; round < 20; ++round) play(sites, round, counts, lost);
  EXPECT_EQ(counts[lost], 0);
  EXPECT_FALSE(sites.get(lost).has_value());
  EXPECT_EQ(sites.visited(), kClients - 1);
}

TEST_P(Sites, GoHomeWhenSavedAndComeBack) {
  std::vector<float> counts(kClients, 0);
  const auto home = make_memory_store(std::make_unique<InMemory>());
  DeviceSites sites(*home, room());
  for (std::int64_t round = 0; round < 7; ++round) play(sites, round, counts);
  const SiteManifest saved = sites.save();
  EXPECT_EQ(saved.size(), sites.visited());
  std::vector<float> later = counts;
  for (std::int64_t round = 7; round < 14; ++round) play(sites, round, later);
  sites.restore(saved);
  for (const auto& [client, round] : saved) EXPECT_EQ(sites.get(client), state(counts[client]));
  std::vector<float> again = counts;
  for (std::int64_t round = 7; round < 14; ++round) play(sites, round, again);
  EXPECT_EQ(again, later);
  const SiteManifest second = sites.save();
  for (const auto& [client, round] : second) {
    EXPECT_EQ(sites.get(client), state(later[client]));
    EXPECT_EQ(home->get(client), state(later[client]));
  }
  sites.clear();
  EXPECT_EQ(sites.visited(), 0u);
}

// Clients move between two stores in every round, saved ones and others, asked ones and others.
TEST_P(Sites, MoveToAnotherStoreAndComeBack) {
  for (const bool saves : {false, true}) {
    const auto archive = [] { return make_memory_store(std::make_unique<InMemory>()); };
    const auto first_home = archive(), second_home = archive();
    DeviceSites first(*first_home, room()), second(*second_home, room());
    std::vector<float> counts(kClients, 0);
    for (std::int64_t round = 0; round < 24; ++round) {
      DeviceSites &here = round % 2 == 0 ? first : second, &there = round % 2 == 0 ? second : first;
      play(here, round, counts);
      if (saves && round % 4 == 1) {
        first.save();
        second.save();
      }
      for (std::uint64_t client = 0; client < kClients; ++client) {
        if (counts[client] == 0) continue;
        const SiteVersion version = here.release(client);
        EXPECT_EQ(expanded(version.state), state(counts[client]));
        EXPECT_LE(version.round, round);
        EXPECT_GE(version.round, 0);
        EXPECT_FALSE(here.get(client).has_value());
        there.adopt(client, version);
        EXPECT_EQ(there.get(client), state(counts[client]));
      }
      EXPECT_EQ(here.visited(), 0u);
    }
    EXPECT_EQ(first.visited(), kClients);
    // What arrived and was asked of nobody is saved too, under the round in which it was made.
    const SiteManifest saved = first.save();
    if (!saves) {
      EXPECT_EQ(saved.size(), kClients);
    }
    for (const auto& [client, round] : saved) {
      EXPECT_EQ(first_home->get(client), state(counts[client]));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Rooms, Sites,
                         testing::Combine(testing::Values(Family::isotropic, Family::diagonal),
                                          testing::Values(0, 5, 100)));

}  // namespace
}  // namespace fedep
