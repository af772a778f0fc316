#include "app/data/import_command.h"

#include <gtest/gtest.h>

#include "app/data/test_data_command.h"
#include "app/test_run.h"
#include "fedep/config/read_recipe.h"
#include "fedep/message/error.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/log/history.h"
#include "fedep/store/log/log_lines.h"
#include "fedep/store/safetensors/safetensors.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

constexpr const char* kRest = R"(
[client]
epochs = 3
batch = 10
optimizer = { name = "sgd", lr = 0.05 }
[server]
clients_per_round = 3
prior = { mean = 0.0, precision = 1.0 }
[[phase]]
algorithm = "fed_ep"
rounds = 4
[phase.inference]
name = "laplace"
)";
constexpr const char* kSynthetic =
    "seed = 1\n[data]\nname = \"synthetic\"\nclients = 8\ndimension = 6\nexamples = 60\n";

struct Ended {
  std::vector<Tensor> tensors;
  std::vector<std::string> rounds;  // their lines, without seconds
};

Ended play(const std::string& recipe, const fs::path& out, const fs::path& data = "") {
  run_recipe(parse_recipe(recipe), {.out = out, .data = data, .threads = 1, .resume = false});
  Ended ended{read_safetensors(out / "checkpoint-4.safetensors").tensors, {}};
  for (RoundRecord& round : read_history(out / "log.jsonl").rounds) {
    round.seconds = 0;
    ended.rounds.push_back(line_of(round));
  }
  return ended;
}

void expect_same(const Ended& a, const Ended& b) {
  ASSERT_GT(a.tensors.size(), 2u);
  EXPECT_EQ(a.tensors, b.tensors);
  EXPECT_EQ(a.rounds.size(), 4u);
  EXPECT_EQ(a.rounds, b.rounds);
}

TEST(Import, ARunOnShardsHasTheBitsOfARunOnTheSource) {
  const TemporaryFolder folder;
  const std::string recipe = std::string(kSynthetic) + kRest;
  folder.write("recipe.toml", recipe);
  const std::string data = printed_by_data(
      fmt::format("data import {0}/recipe.toml --out {0}/shards", folder.path().string()));
  expect_same(play(recipe, folder.path() / "source"),
              play("seed = 1\n" + data + kRest, folder.path() / "cut"));
}

TEST(Import, ARunOnATablesShardsHasItsBitsAndItsFeatures) {
  const TemporaryFolder folder;
  folder.write("wards.csv", ward_table());
  std::string recipe = ward_recipe(kFedEp);
  recipe.replace(recipe.find("rounds = 6"), 10, "rounds = 4");
  folder.write("recipe.toml", recipe);
  const std::string path = folder.path().string();
  const std::string data =
      printed_by_data(fmt::format("data import {0}/recipe.toml --data {0} --out {0}/shards", path));
  const Ended source = play(recipe, folder.path() / "source", folder.path());
  const std::size_t begin = recipe.find("[data]"), end = recipe.find("[client]");
  recipe.replace(begin, end - begin, data);
  expect_same(source, play(recipe, folder.path() / "cut"));
  EXPECT_EQ(read_file(folder.path() / "source" / "features.json"),
            read_file(folder.path() / "cut" / "features.json"));
}

TEST(Import, RefusesWhatARunWouldRefuseAndWritesNothing) {
  const TemporaryFolder folder;
  const std::string path = folder.path().string();
  const auto refused = [&](const std::string& more) {
    const std::string out = path + "/shards";
    EXPECT_THROW(
        printed_by_data(fmt::format("data import {}/recipe.toml --out {} {}", path, out, more)),
        InputError)
        << more;
    EXPECT_FALSE(fs::exists(out));
  };
  folder.write("recipe.toml", std::string(kSynthetic) + kRest);
  refused("--set data.name=\"toy\" --set phase.0.inference.name=\"exact\"");
  refused("--set server.clients_per_round=9");
  refused("--set data.name=\"femnist\" --data " + path);
  refused("--set phase.0.inference.name=\"laplas\"");
}

TEST(Synth, ARunOnTheTableHasTheBitsOfARunOnTheBuiltInTask) {
  const TemporaryFolder folder;
  const std::string data = printed_by_data(fmt::format(
      "data synth --clients 8 --dimension 6 --examples 60 --seed 1 --out {}/synthetic.csv",
      folder.path().string()));
  expect_same(play(std::string(kSynthetic) + kRest, folder.path() / "built-in"),
              play("seed = 1\n" + data + kRest, folder.path() / "table"));
}

TEST(Synth, RefusesNumbersThatMakeNoTask) {
  const TemporaryFolder folder;
  const std::string out = " --out " + folder.path().string() + "/t.csv";
  EXPECT_THROW(printed_by_data("data synth --alpha -1" + out), InputError);
  EXPECT_THROW(printed_by_data("data synth --test-fraction 1.5" + out), InputError);
  EXPECT_FALSE(fs::exists(folder.path() / "t.csv"));
}

}  // namespace
}  // namespace fedep
