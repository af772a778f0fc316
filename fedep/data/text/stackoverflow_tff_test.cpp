#include "fedep/data/text/stackoverflow_tff.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <hdf5.h>

#include "fedep/data/text/stackoverflow.h"
#include "fedep/message/error.h"
#include "fedep/message/test_folder.h"

namespace fedep {
namespace {

using Words = std::vector<std::string>;
using ClientStrings =
    std::map<std::string, std::map<std::string, Words>>;  // client -> array -> values

void write_h5(const std::filesystem::path& path, const ClientStrings& clients) {
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t examples = H5Gcreate2(file, "examples", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t type = H5Tcopy(H5T_C_S1);
  H5Tset_size(type, H5T_VARIABLE);
  H5Tset_cset(type, H5T_CSET_UTF8);
  for (const auto& [client, arrays] : clients) {
    const hid_t group = H5Gcreate2(examples, client.c_str(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    for (const auto& [name, values] : arrays) {
      const hsize_t count = values.size();
      const hid_t space = H5Screate_simple(1, &count, nullptr);
      const hid_t array =
          H5Dcreate2(group, name.c_str(), type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
      std::vector<const char*> texts;
      for (const std::string& value : values) texts.push_back(value.c_str());
      H5Dwrite(array, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, texts.data());
      H5Dclose(array);
      H5Sclose(space);
    }
    H5Gclose(group);
  }
  H5Tclose(type);
  H5Gclose(examples);
  H5Fclose(file);
}

const ClientStrings kTrain = {
    {"10",
     {{"tokens", {"how to . parse json", "json ?"}},
      {"title", {"parse it", ""}},
      {"tags", {"java|json", "json"}},
      {"score", {"1", "2"}}}},
    {"9", {{"tokens", {"how how"}}, {"title", {"to"}}, {"tags", {"c++"}}}}};
const ClientStrings kTest = {
    {"77", {{"tokens", {"parse perl"}}, {"title", {"parse"}}, {"tags", {"json|perl"}}}}};

std::filesystem::path folder_with(const ClientStrings& train, const ClientStrings& test) {
  const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
  const auto folder = std::filesystem::path(testing::TempDir()) / ("stackoverflow_tff_" + name);
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  write_h5(folder / kTffTrainFile, train);
  write_h5(folder / kTffTestFile, test);
  return folder;
}

TEST(StackoverflowTff, ClientsAndQuestionsAreRead) {
  const auto data = open_stackoverflow({}, 1, folder_with(kTrain, kTest));
  const std::vector<std::pair<std::string, std::size_t>> clients = {{"10", 2}, {"9", 1}};
  EXPECT_EQ(data->clients(), clients);
  EXPECT_EQ(data->test_clients(), Words{"77"});
  // how, to: two users; the others one, in alphabetical order.
  EXPECT_EQ(data->info().feature_names, (Words{"how", "to", ".", "?", "it", "json", "parse"}));
  EXPECT_EQ(data->info().output_names, (Words{"json", "c++", "java"}));
  Batch batch;
  const std::vector<std::uint32_t> first = {0};
  data->train_batch(1, first, nullptr, batch);  // how how to
  EXPECT_EQ(batch.sparse.columns, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_FLOAT_EQ(batch.sparse.values[0], 2.f / 3);
  EXPECT_EQ(batch.tags.columns, (std::vector<std::uint32_t>{1}));
  data->test_batch(0, 1, batch);  // parse parse, perl not in the vocabulary
  EXPECT_EQ(batch.sparse.columns, (std::vector<std::uint32_t>{6}));
  EXPECT_EQ(batch.sparse.values, (std::vector<float>{1.f}));
}

TEST(StackoverflowTff, PublishedVocabulariesAreKept) {
  const auto folder = folder_with(kTrain, kTest);
  std::ofstream(folder / "stackoverflow.word_count") << "parse 9\nthe 7\nhow 5\n";
  std::ofstream(folder / "stackoverflow.tag_count") << R"({"z": 1, "json": 5, "b": 3, "a": 3})";
  const auto data = open_stackoverflow({}, 1, folder);
  EXPECT_EQ(data->info().feature_names, (Words{"parse", "the", "how"}));
  EXPECT_EQ(data->info().output_names, (Words{"json", "b", "a", "z"}))
      << "equals in the file's order";
  EXPECT_EQ(read_word_counts(folder / "stackoverflow.word_count", 2), (Words{"parse", "the"}));
  EXPECT_EQ(read_tag_counts(folder / "stackoverflow.tag_count", 1), Words{"json"});
}

TEST(StackoverflowTff, LimitsHoldForClientsNotForTheTestSet) {
  const auto folder = folder_with(kTrain, kTest);
  const auto few = open_stackoverflow({.min_examples = 2, .max_examples = 1}, 1, folder);
  ASSERT_EQ(few->clients().size(), 1u);
  EXPECT_EQ(few->clients()[0].second, 1u);
  EXPECT_EQ(few->test_size(), 1u);
}

TEST(StackoverflowTff, ABadFileIsRefused) {
  ClientStrings uneven = kTrain;
  uneven["9"]["title"].push_back("one too many");
  EXPECT_THROW(open_stackoverflow({}, 1, folder_with(uneven, kTest)), InputError);
  ClientStrings without = kTrain;
  without["9"].erase("tags");
  EXPECT_THROW(open_stackoverflow({}, 1, folder_with(without, kTest)), InputError);
  EXPECT_THROW(open_stackoverflow({}, 1, folder_with({}, kTest)), InputError);
  const auto folder = folder_with(kTrain, kTest);
  std::ofstream(folder / "stackoverflow.tag_count") << "[1, 2]";
  EXPECT_THROW(open_stackoverflow({}, 1, folder), InputError);
  std::filesystem::remove(folder / "stackoverflow.tag_count");
  std::ofstream(folder / "stackoverflow.word_count") << "a 1\nword\n";
  EXPECT_THROW(open_stackoverflow({}, 1, folder), InputError);
  std::filesystem::remove(folder / "stackoverflow.word_count");
  std::ofstream(folder / kTffTestFile) << "not HDF5";
  EXPECT_THROW(open_stackoverflow({}, 1, folder), InputError);
  std::filesystem::remove(folder / kTffTestFile);
  const std::string missing = message_of<InputError>([&] { open_stackoverflow({}, 1, folder); });
  EXPECT_NE(missing.find("is missing"), std::string::npos) << missing;
  EXPECT_EQ(missing.find("unpack_data"), std::string::npos) << missing;  // which has no such file
}

}  // namespace
}  // namespace fedep
