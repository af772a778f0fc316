#include "fedep/store/burn_in.h"

#include <fstream>

#include <gtest/gtest.h>

#include "fedep/config/read_recipe.h"
#include "fedep/config/write_recipe.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/checkpoint.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/log/log_lines.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHead = R"(
table = "table2"
row = "one"
[data]
name = "toy"
[server]
optimizer = { name = "sgd", lr = 0.5, momentum = 0.5 }
[[phase]]
algorithm = "fed_avg"
rounds = 3
)";
constexpr const char* kSecondPhase = R"(
[[phase]]
algorithm = "fed_ep"
rounds = 4
[phase.inference]
name = "exact"
)";

Recipe row(const std::vector<std::string>& overrides = {}) {
  return parse_recipe(std::string(kHead) + kSecondPhase, "recipe", overrides);
}

TEST(BurnIn, DependsOnEverythingThatTheFirstPhaseDoes) {
  const auto first = burn_in_of(row(), 3);
  ASSERT_TRUE(first);
  for (const char* const change :
       {"seed=2", "data.clients=31", "data.path=\"other\"", "model.name=\"cnn\"", "client.epochs=2",
        "client.optimizer.lr=0.5", "server.clients_per_round=9", "server.grid_bits=32",
        "server.optimizer.lr=0.25", "server.prior={mean=0.0,precision=1.0}", "phase.0.clip=1.0",
        "phase.0.algorithm=\"fed_pa\"", "phase.0.cooldown={after=2,rounds=9}", "evaluate.every=2",
        "phase.0.average={rounds=9}", "phase.0.schedule={visit_rate={to=0.5}}",
        "data.calibration_fraction=0.1", "evaluate.examples=10"}) {
    EXPECT_NE(burn_in_of(row({change}), 3), first) << change;
  }
}

TEST(BurnIn, DoesNotDependOnWhatComesAfterwardsOrOnNames) {
  const auto first = burn_in_of(row(), 3);
  for (const char* const change :
       {"table=\"table8\"", "row=\"two\"", "phase.1.rounds=9", "phase.1.clip=1.0",
        "phase.1.inference.alpha=0.5", "phase.1.algorithm=\"fed_sep\"", "checkpoint.every=1",
        "checkpoint.factors=false", "server.factor_optimizer={name=\"sgd\",lr=0.1}",
        "evaluate.samples=10", "evaluate.marginal_every=1", "phase.0.rounds=9",
        "phase.0.cooldown={after=3,rounds=9}"}) {
    EXPECT_EQ(burn_in_of(row({change}), 3), first) << change;
  }
  EXPECT_EQ(burn_in_of(parse_recipe(kHead), 3), first);
  EXPECT_NE(burn_in_of(row(), 2), first);
}

// What lasts to the phase's end depends on its length.
TEST(BurnIn, OfALongerPhaseIsAnotherWhereItsLengthCounts) {
  const std::string rate = "phase.0.schedule={server_rate={to=0.5}}";
  EXPECT_NE(burn_in_of(row({rate}), 3), burn_in_of(row({rate, "phase.0.rounds=9"}), 3));
  const std::string tail = "phase.0.average={kind=\"tail\",rounds=2}";
  EXPECT_FALSE(burn_in_of(row({tail}), 3));
  EXPECT_EQ(burn_in_of(row({tail, "phase.0.rounds=5"}), 3), burn_in_of(row(), 3));  // before it
}

TEST(BurnIn, OfFewerRoundsOrOfClientsWithMemoryDoesNotExist) {
  EXPECT_FALSE(burn_in_of(row(), 4));
  EXPECT_FALSE(burn_in_of(row({"phase.0.algorithm=\"fed_ep\""}), 3));
  EXPECT_TRUE(burn_in_of(row({"phase.0.algorithm=\"fed_sep\""}), 3));
  EXPECT_FALSE(burn_in_of(Recipe{}, 0));
}

// With a posterior in the first phase, its draws are scored.
TEST(BurnIn, OfAPhaseWithAPosteriorDependsOnItsDraws) {
  const std::string posterior = "phase.0.algorithm=\"fed_sep\"";
  EXPECT_NE(burn_in_of(row({posterior, "evaluate.samples=10"}), 3),
            burn_in_of(row({posterior}), 3));
}

class SharedBurnInTest : public testing::Test {
 protected:
  SharedBurnIn burn_in(const Recipe& recipe, const std::string& origin = "data 1\ndevice 2\n") {
    return {folder_.path() / "burn-in", recipe, origin, layout_,
            [this](std::string_view line) { told_.emplace_back(line); }};
  }
  RunDirectory directory(const std::string& name, const Recipe& recipe) {
    return RunDirectory::create(folder_.path() / name, recipe);
  }
  static std::vector<RoundRecord> first(std::int64_t rounds) {
    std::vector<RoundRecord> all;
    for (std::int64_t round = 0; round < rounds; ++round) {
      all.push_back(record_of(round, "fed_avg", {}, 0.1, {{"accuracy", 0.3 + 1e-17}}));
    }
    return all;
  }
  static std::vector<std::string> lines(std::span<const RoundRecord> rounds) {
    std::vector<std::string> lines;
    for (const RoundRecord& round : rounds) lines.push_back(line_of(round));
    return lines;
  }
  // What three rounds of FedAvg could have left.
  ServerState state(std::int64_t round = 3) const {
    ServerState state = initial_server_state(row().server, {1.0f, -2.0f, 0.1f});
    state.phase = 0;
    state.round = round;
    state.initial = {};
    state.optimizer = {.steps = round, .slots = {{HostVector<float>{1, 2, 3}, 0.0f}}};
    state.grid = {.largest_eta = 0.1, .largest_lambda = 0, .extra_bits = 1};
    return state;
  }
  void keep(const Recipe& recipe, std::int64_t rounds = 3) {
    const auto phases = plan_phases(recipe, [](std::string_view) { return Family::diagonal; });
    burn_in(recipe).keep(state(rounds), phases[0], first(rounds));
  }
  std::vector<fs::path> files() const {
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(folder_.path() / "burn-in"))
      files.push_back(entry);
    std::sort(files.begin(), files.end());
    return files;
  }
  static std::vector<std::byte> bytes(const fs::path& path) { return read_file(path); }

  TemporaryFolder folder_;
  Layout layout_{{"weight", {3}}};
  std::vector<std::string> told_;
  const RunHeader header_{.seed = 1};
};

TEST_F(SharedBurnInTest, ARowBeginsWithTheStateAndTheRoundsThatAnotherKept) {
  keep(row());
  const Recipe other = row({"row=\"two\"", "phase.1.clip=1.0"});
  const RunDirectory run = directory("two", other);
  const std::vector<RoundRecord> rounds = burn_in(other).adopt(run, header_);
  EXPECT_EQ(lines(rounds), lines(first(3)));
  EXPECT_EQ(run.checkpoints(), std::vector<std::int64_t>{3});
  const Checkpoint checkpoint = read_checkpoint(run.checkpoint(3), layout_);
  EXPECT_EQ(checkpoint.state, state());
  EXPECT_EQ(checkpoint.recipe, to_toml(other));  // as if it had come this far by itself
  EXPECT_EQ(checkpoint.slots, std::vector<std::string>{"momentum"});
  const History history = read_history(run.log());
  ASSERT_TRUE(history.header);
  EXPECT_EQ(*history.header, (RunHeader{.seed = 1, .shared_rounds = 3}));
  EXPECT_EQ(lines(history.rounds), lines(first(3)));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("the first 3 rounds are those of"), told_[0].npos);
}

TEST_F(SharedBurnInTest, TheLatestStateOnARowsPathIsTaken) {
  const Recipe longer = row({"phase.0.rounds=9"});
  keep(longer, 2);
  keep(longer, 5);
  EXPECT_EQ(burn_in(row()).adopt(directory("short", row()), header_).size(), 2u);
  EXPECT_EQ(burn_in(longer).adopt(directory("long", longer), header_).size(), 5u);
  // The last round of a run is scored in its own way, so it is nobody else's.
  const Recipe ends_there = parse_recipe(kHead, "recipe", {"phase.0.rounds=5"});
  EXPECT_EQ(burn_in(ends_there).adopt(directory("ends", ends_there), header_).size(), 2u);
  keep(ends_there, 5);
  EXPECT_EQ(files().size(), 4u);
}

TEST_F(SharedBurnInTest, NothingIsTakenThatDependsOnSomethingElse) {
  keep(row());
  const Recipe seed = row({"seed=2"});
  EXPECT_TRUE(burn_in(seed).adopt(directory("seed", seed), header_).empty());
  EXPECT_TRUE(
      burn_in(row(), "data 2\ndevice 2\n").adopt(directory("data", row()), header_).empty());
  // Also where its name says that it is the one.
  burn_in(seed).keep(state(), plan_phases(seed, [](auto) { return Family::diagonal; })[0],
                     first(3));
  const std::vector<fs::path> kept = files();
  ASSERT_EQ(kept.size(), 4u);
  fs::copy_file(kept[1], folder_.path() / "other");
  fs::rename(kept[3], kept[1]);
  fs::rename(folder_.path() / "other", kept[3]);
  EXPECT_TRUE(burn_in(seed).adopt(directory("renamed", seed), header_).empty());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("must be this run's, but differ; not used"), told_[0].npos) << told_[0];
}

TEST_F(SharedBurnInTest, ARunThatIsThereAlreadyIsLeftAlone) {
  keep(row());
  const RunDirectory run = directory("one", row());
  write_checkpoint(run.checkpoint(3), {state(), {}, to_toml(row()), {"momentum"}}, layout_);
  EXPECT_TRUE(burn_in(row()).adopt(run, header_).empty());
  EXPECT_FALSE(fs::exists(run.log()));
  const RunDirectory behind = directory("behind", row());
  write_checkpoint(behind.checkpoint(2), {state(2), {}, to_toml(row()), {"momentum"}}, layout_);
  EXPECT_EQ(burn_in(row()).adopt(behind, header_).size(), 3u);
}

TEST_F(SharedBurnInTest, AByteThatIsWrongOrMissingAnywhereIsNoticedAndNothingIsTaken) {
  keep(row());
  const RunDirectory run = directory("one", row());
  for (const fs::path& path : files()) {
    const std::vector<std::byte> whole = bytes(path);
    // Every 7th byte, and every 7th length.
    for (std::size_t i = 0; i < 2 * whole.size(); i += 7) {
      std::vector<std::byte> damaged = whole;
      if (i < whole.size()) {
        damaged[i] ^= std::byte{1};
      } else {
        damaged.resize(i - whole.size());
      }
      std::ofstream(path, std::ios::binary)
          .write(reinterpret_cast<const char*>(damaged.data()), std::streamsize(damaged.size()));
      told_.clear();
      EXPECT_TRUE(burn_in(row()).adopt(run, header_).empty()) << path << " byte " << i;
      ASSERT_EQ(told_.size(), 1u) << path << " byte " << i;
      EXPECT_NE(told_[0].find("not used"), told_[0].npos);
      EXPECT_EQ(told_[0].find('\n'), told_[0].npos);
      EXPECT_TRUE(run.checkpoints().empty());
    }
    replace_file(path, whole);
  }
  fs::remove(files()[0]);  // the rounds
  EXPECT_TRUE(burn_in(row()).adopt(run, header_).empty());
}

TEST_F(SharedBurnInTest, TheBytesKeptDependOnTheRoundsAlone) {
  keep(row());
  const auto first = files();
  const auto before = bytes(first[1]);
  keep(row({"row=\"two\"", "phase.1.rounds=9", "checkpoint.every=1"}));
  EXPECT_EQ(files(), first);
  EXPECT_EQ(bytes(first[1]), before);
}

TEST_F(SharedBurnInTest, AFolderThatCannotBeMadeIsToldOfAndHarmsNothing) {
  std::ofstream(folder_.path() / "burn-in") << "a file\n";
  keep(row());
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_NE(told_[0].find("other result rows will play these rounds again"), told_[0].npos);
  EXPECT_TRUE(burn_in(row()).adopt(directory("one", row()), header_).empty());
}

}  // namespace
}  // namespace fedep
