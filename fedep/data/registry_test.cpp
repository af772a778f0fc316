// What every data set of the table owes, whichever it is.
#include "fedep/data/registry.h"

#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "fedep/data/fingerprint.h"
#include "fedep/data/partition_kinds.h"
#include "fedep/data/test_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

DataSettings named(const DatasetRow& row) {
  return {.name = std::string(row.name), .path = std::string(row.name)};
}

TEST(Datasets, AreFoundByNameAndAnUnknownOneGetsASuggestion) {
  std::set<std::string_view> names;
  for (const DatasetRow& row : datasets()) {
    EXPECT_EQ(&find_dataset(row.name), &row);
    EXPECT_FALSE(row.summary.empty()) << row.name;
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
  }
  EXPECT_THAT(message_of<InputError>([] { find_dataset("cifar10"); }),
              HasSubstr("unknown data set cifar10; did you mean cifar100?"));
}

TEST(Datasets, AreDrawnByThePartitionsSeedWhereThereIsOne) {
  DataSettings settings{.name = "synthetic", .clients = 3, .dimension = 4, .examples = 20};
  const auto fingerprint_of = [&](std::uint64_t seed) {
    return fingerprint(*open_dataset(settings, seed, ""));
  };
  const std::uint64_t third = fingerprint_of(3);
  EXPECT_NE(fingerprint_of(1), third);
  settings.partition_seed = 3;
  EXPECT_EQ(fingerprint_of(1), third);
  EXPECT_EQ(fingerprint_of(2), third);
}

TEST(Datasets, RefuseAPartitionThatDoesNotExist) {
  for (const DatasetRow& row : datasets()) {
    if (!row.has_examples()) continue;
    DataSettings settings = named(row);
    settings.partition = "oddly";
    EXPECT_THAT(message_of<InputError>([&] { open_dataset(settings, 1, ""); }),
                HasSubstr("unknown data.partition oddly"))
        << row.name;
  }
}

TEST(Datasets, WhoseClientsAreWhatTheyAreRefuseToBePartitioned) {
  for (const DatasetRow& row : datasets()) {
    if (!row.has_examples() || row.partition != PartitionUse::natural) continue;
    for (const PartitionKind& kind : partition_kinds()) {
      if (kind.natural()) continue;
      DataSettings settings = named(row);
      settings.partition = kind.name;
      EXPECT_THAT(message_of<InputError>([&] { open_dataset(settings, 1, ""); }),
                  HasSubstr("must be natural, but is "))
          << row.name;
    }
  }
}

// Those made up on the spot need no files; all others say which they miss.
TEST(Datasets, OpenFromNothingOrSayWhatIsMissing) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "empty");
  for (const DatasetRow& row : datasets()) {
    if (!row.has_examples()) continue;
    DataSettings settings = named(row);
    settings.path = "empty";
    std::unique_ptr<Dataset> data;
    try {
      data = open_dataset(settings, 1, folder.path());
    } catch (const InputError& error) {
      EXPECT_THAT(error.what(), AnyOf(HasSubstr("empty"), HasSubstr("data."))) << row.name;
      continue;
    }
    EXPECT_EQ(data->info().name, row.name);
    EXPECT_FALSE(data->clients().empty()) << row.name;
    EXPECT_GT(data->info().outputs, 0u) << row.name;
  }
}

TEST(Datasets, WithoutExamplesAreNotOpened) {
  for (const DatasetRow& row : datasets()) {
    if (row.has_examples()) continue;
    EXPECT_THAT(message_of<InputError>([&] { open_dataset(named(row), 1, ""); }),
                HasSubstr("must have examples, but " + std::string(row.name) + " has none"));
  }
}

TEST(Datasets, WhoseImagesComeFromFilesRefuseOneThatIsNotThere) {
  for (const DatasetRow& row : datasets()) {
    DatasetInfo info;
    info.name = row.name;
    info.features = {28, 28, 1};
    const std::string message = message_of<InputError>([&] { read_images("nowhere.bin", info); });
    if (row.read_images != nullptr) {
      EXPECT_THAT(message, HasSubstr("nowhere.bin")) << row.name;
    } else {
      EXPECT_THAT(message, HasSubstr("but are " + std::string(row.name))) << row.name;
    }
  }
}

}  // namespace
}  // namespace fedep
