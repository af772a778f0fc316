#include "fedep/store/own_checkpoint.h"

#include <cstring>
#include <fstream>
#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"
#include "fedep/store/durable_file.h"
#include "fedep/store/json.h"
#include "fedep/store/safetensors/safetensors.h"
#include "fedep/store/test_kept_run.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

// Every byte below a folder.
std::map<std::string, std::string> files_in(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().string()] = text_of(entry.path());
  }
  return files;
}

// The same tensors with other metadata, and with checksums that are right again.
template <class Change>
void change_metadata(const fs::path& file, Change change) {
  SafetensorsFile read = read_safetensors(file);
  change(read.metadata);
  std::vector<TensorView> tensors;
  for (const Tensor& tensor : read.tensors) {
    tensors.push_back({tensor.name, tensor.shape, view(tensor.values)});
  }
  write_safetensors(file, tensors, read.metadata);
}

void change_number(const fs::path& file, const char* name, std::int64_t value) {
  change_metadata(file, [&](Metadata& metadata) {
    Json numbers = Json::parse(metadata.at("numbers"));
    numbers[name] = value;
    metadata["numbers"] = numbers.dump();
    if (std::string_view(name) == "round") metadata["round"] = std::to_string(value);
  });
}

void strip_checksums(const fs::path& file) {
  const std::string all = text_of(file);
  std::uint64_t size = 0;
  std::memcpy(&size, all.data(), sizeof size);
  Json header = Json::parse(all.substr(sizeof size, size));
  Json metadata = Json::object();
  for (const auto& [key, value] : header["__metadata__"].items()) {
    if (!key.starts_with("xxh3.")) metadata[key] = value;
  }
  header["__metadata__"] = metadata;
  const std::string text = header.dump();
  const std::string data = all.substr(sizeof size + size);
  size = text.size();
  std::ofstream out(file, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&size), sizeof size);
  out << text << data;
}

void make_version_1(const fs::path& file) {
  change_metadata(file, [](Metadata& metadata) {
    metadata["format_version"] = "1";
    metadata.erase("log");
    metadata.erase("site_seals");
  });
}

class OwnCheckpoints : public testing::Test {
 protected:
  OwnCheckpoints() { run_.play_until(6); }

  // Of a resume, which must leave everything as it was.
  std::string refusal(const std::vector<std::string>& overrides = {}) const {
    const auto before = files_in(run_.path());
    const std::string text =
        message_of<InputError>([&] { KeptTestRun(run_.path(), overrides).resume_until(7); });
    EXPECT_EQ(files_in(run_.path()), before);
    return text;
  }
  KeptTestRun other(const std::vector<std::string>& overrides) const {
    KeptTestRun other(folder_.path() / "other", overrides);
    other.play_until(6);
    return other;
  }
  fs::path site() const {  // of the latest checkpoint
    return site_file(run_.path() / "sites", KeptTestRun::client_of(5), 5);
  }

  TemporaryFolder folder_;
  KeptTestRun run_{folder_.path() / "run"};
  const fs::path latest_ = run_.checkpoint(6);
};

TEST_F(OwnCheckpoints, AreGoneOnFrom) {
  EXPECT_EQ(run_.resume_until(7), 6);
  EXPECT_TRUE(run_.told().empty());
  KeptTestRun whole(folder_.path() / "whole");
  whole.play_until(7);
  EXPECT_EQ(text_of(run_.checkpoint(7)), text_of(whole.checkpoint(7)));
}

TEST_F(OwnCheckpoints, OfAnotherSeedOrRateAreRefused) {
  for (const auto& [change, told] :
       {std::pair{"seed=2", "seed = 2 there"}, {"server.optimizer.lr=0.25", "lr = 0.25 there"}}) {
    const KeptTestRun another = other({change});
    fs::copy_file(another.checkpoint(6), latest_, fs::copy_options::overwrite_existing);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr(told)));
    make_version_1(latest_);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr(told)));
    fs::remove_all(another.path());
  }
}

TEST_F(OwnCheckpoints, OfAnotherLogAreRefused) {
  const KeptTestRun another = other({"seed=2"});
  fs::copy_file(another.path() / "log.jsonl", run_.path() / "log.jsonl",
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("the log beside it")));
}

TEST_F(OwnCheckpoints, WithAnotherRunsFactorsAreRefused) {
  const KeptTestRun another = other({"seed=2"});
  fs::copy_file(site_file(another.path() / "sites", KeptTestRun::client_of(5), 5), site(),
                fs::copy_options::overwrite_existing);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(site().string()), HasSubstr("but is another")));
  fs::resize_file(site(), 3);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(site().string()), HasSubstr("but is shorter")));
}

TEST_F(OwnCheckpoints, WithoutChecksumsAreRefusedWhateverTheirVersion) {
  strip_checksums(latest_);
  EXPECT_FALSE(read_safetensors(latest_).checksums);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("must have checksums")));
  make_version_1(latest_);
  strip_checksums(latest_);
  EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("must have checksums")));
}

TEST_F(OwnCheckpoints, OfRoundsAndPhasesThatCannotBeAreRefused) {
  const std::string whole = text_of(latest_);
  for (const auto& [name, value] : {std::pair<const char*, std::int64_t>{"phase", -1},
                                    {"phase", 99},
                                    {"phase", 0},
                                    {"round", 0},
                                    {"round", 5},
                                    {"round", -1},
                                    {"optimizer_steps", -1}}) {
    change_number(latest_, name, value);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("must be"))) << name;
    make_version_1(latest_);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("must be"))) << name;
    std::ofstream(latest_, std::ios::binary) << whole;
  }
  fs::rename(latest_, run_.checkpoint(5));
  EXPECT_THAT(refusal(), HasSubstr("round must be the 5 of its name"));
}

TEST_F(OwnCheckpoints, WhoseSitesAreTakenAwayOrOfOtherRoundsAreRefused) {
  const std::string whole = text_of(latest_);
  for (const char* const sites : {"{}", R"({"0000000000000001":2})", R"({"0000000000000001":6})"}) {
    change_metadata(latest_, [&](Metadata& metadata) { metadata["sites"] = sites; });
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("sites must"))) << sites;
    change_metadata(latest_, [&](Metadata& metadata) { metadata["site_seals"] = "{}"; });
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("sites must"))) << sites;
    make_version_1(latest_);
    EXPECT_THAT(refusal(), AllOf(HasSubstr(latest_.string()), HasSubstr("sites must"))) << sites;
    std::ofstream(latest_, std::ios::binary) << whole;
  }
}

// Factors that refer to means of q say nothing to a phase whose factors do not.
TEST_F(OwnCheckpoints, WhoseFactorsReferToMeansAreRefusedWhereNoneShould) {
  change_metadata(latest_, [](Metadata& metadata) {
    Json sites = Json::parse(metadata.at("sites"));
    sites[fmt::format("{:016x}", mean_key(5))] = 5;
    metadata["sites"] = sites.dump();
  });
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr(latest_.string()), HasSubstr("checkpoint.sparse must be")));
}

TEST_F(OwnCheckpoints, WithStepsOfAnotherClockAreRefused) {
  change_metadata(latest_, [](Metadata& metadata) {
    Json numbers = Json::parse(metadata.at("numbers"));
    numbers["step_scales"] = {1.0, 0.5};
    metadata["numbers"] = numbers.dump();
  });
  EXPECT_THAT(refusal(), HasSubstr("step_scales must be those of 0 steps, but there are 2"));
}

TEST_F(OwnCheckpoints, OfAnUnknownVersionAreRefused) {
  change_metadata(latest_, [](Metadata& metadata) { metadata["format_version"] = "3"; });
  EXPECT_THAT(refusal(), HasSubstr("format version must be 2, but is 3"));
}

TEST_F(OwnCheckpoints, OfVersion1AreGoneOnFromWithANotice) {
  make_version_1(latest_);
  EXPECT_FALSE(read_checkpoint(latest_, run_.layout()).log);
  EXPECT_EQ(run_.resume_until(7), 6);
  ASSERT_EQ(run_.told().size(), 1u);
  EXPECT_THAT(run_.told()[0], AllOf(HasSubstr(latest_.string()), HasSubstr("version 1")));
  EXPECT_TRUE(read_checkpoint(run_.checkpoint(7), run_.layout()).log);
  KeptTestRun whole(folder_.path() / "whole");
  whole.play_until(7);
  EXPECT_EQ(text_of(run_.checkpoint(7)), text_of(whole.checkpoint(7)));
}

// Which rounds are a phase's last ones depends on how many it has.
TEST_F(OwnCheckpoints, HaveNoAverageOfATailWhoseRoundsAreOthersNow) {
  const std::string tail = "phase.1.average={kind='tail',rounds=2}";
  KeptTestRun short_one(folder_.path() / "tail", {tail});
  short_one.play_until(7);
  const auto average_in = [&](const char* rounds) {
    const KeptTestRun now(short_one.path(), {tail, rounds});
    return read_own_checkpoint(RunDirectory::of_another(short_one.path()), 7, now.layout(),
                               now.recipe(), now.phases())
        .checkpoint.state.average.rounds;
  };
  EXPECT_EQ(average_in("phase.1.rounds=4"), 2);
  EXPECT_EQ(average_in("phase.1.rounds=6"), 0);
  EXPECT_EQ(average_in("phase.1.rounds=9"), 0);
  EXPECT_THAT(message_of<InputError>([&] { average_in("phase.1.rounds=5"); }),
              HasSubstr("average must be of 1 of the phase's last 2 rounds, but is of 2"));
}

// checkpoint.factors may be another with --resume; what a file holds is what it was written with.
TEST_F(OwnCheckpoints, AreGoneOnFromIfTheyHaveFactorsWhateverTheRecipeSaysNow) {
  KeptTestRun without(folder_.path() / "without", {"checkpoint.factors=false"});
  without.play_until(6);
  EXPECT_EQ(KeptTestRun(without.path()).resume_until(7), 3);  // where the phase begins
  EXPECT_EQ(KeptTestRun(run_.path(), {"checkpoint.factors=false"}).resume_until(7), 6);
}

TEST_F(OwnCheckpoints, ThatCannotBeGoneOnFromAreRemovedWhereTheRunBeginsAnew) {
  KeptTestRun without(folder_.path() / "without", {"checkpoint.factors=false"});
  without.play_until(6);
  fs::remove(without.checkpoint(3));
  EXPECT_EQ(without.resume_until(2), 0);
  EXPECT_FALSE(fs::exists(without.checkpoint(6)));
}

TEST_F(OwnCheckpoints, ThatCannotBeGoneOnFromStayBeforeOneThatCan) {
  const std::vector<std::string> settings{"checkpoint.factors=false", "checkpoint.keep=3"};
  KeptTestRun without(folder_.path() / "without", settings);
  without.play_until(7);
  const auto files = files_in(without.path());
  EXPECT_TRUE(fs::exists(without.checkpoint(5)));
  EXPECT_EQ(KeptTestRun(without.path(), settings).resume_until(7), 7);
  EXPECT_EQ(files_in(without.path()), files);
  // Rounds behind it are played again.
  KeptTestRun stopped(folder_.path() / "stopped", settings);
  stopped.play_until(6);
  EXPECT_EQ(KeptTestRun(stopped.path(), settings).resume_until(4), 3);
  EXPECT_TRUE(fs::exists(stopped.checkpoint(4)));
  EXPECT_FALSE(fs::exists(stopped.checkpoint(5)));
}

TEST_F(OwnCheckpoints, AreNotLookedForInWhatAnotherRunLeft) {
  fs::remove(run_.path() / "recipe.toml");
  const auto refused = [&] {
    return message_of<InputError>([&] { KeptTestRun(run_.path()).play_until(7); });
  };
  EXPECT_THAT(refused(), HasSubstr("but has log.jsonl"));
  fs::remove(run_.path() / "log.jsonl");
  EXPECT_THAT(refused(), HasSubstr("but has checkpoint-6.safetensors"));
  fs::remove(latest_);
  EXPECT_TRUE(fs::exists(site()));
  EXPECT_EQ(KeptTestRun(run_.path()).play_until(3), 0);
  EXPECT_FALSE(fs::exists(site()));
}

}  // namespace
}  // namespace fedep
