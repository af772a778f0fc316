#include "fedep/data/image/leaf.h"

#include <gtest/gtest.h>

#include "fedep/data/image/test_emnist_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string refusal(const std::string& text) {
  const TemporaryFolder folder;
  folder.write("file.json", text);
  ImagePart part;
  return message_of<InputError>([&] { read_leaf_file(folder.path() / "file.json", part); });
}

TEST(Leaf, SeveralFilesAreReadInOrderOfTheirNames) {
  const TestImages images = some_emnist(1);
  TestImages first, second;
  for (const TestImage& image : images) (image.client == "c" ? first : second).push_back(image);
  const TemporaryFolder folder;
  folder.write("train/all_data_0.json", leaf_json(first, false).dump());
  folder.write("train/all_data_1.json", leaf_json(second, false).dump());
  folder.write("train/notes.txt", "not data");
  folder.write("test/all_data_0.json", leaf_json(images, true).dump());
  const auto data = open_leaf({}, 1, folder.path());
  const std::vector<std::pair<std::string, std::size_t>> expected{{"c", 5}, {"a", 3}, {"b", 4}};
  EXPECT_EQ(data->clients(), expected);
  EXPECT_EQ(data->test_size(), 3u);
  EXPECT_EQ(data->test_clients(), (std::vector<std::string>{"c", "a", "b"}));
}

TEST(Leaf, BadRecordsAreSkippedAndCounted) {
  nlohmann::json json = leaf_json(some_emnist(1), false);
  json["user_data"]["a"]["x"][0].erase(3);      // 783 pixels
  json["user_data"]["a"]["x"][1].push_back(0);  // 785
  json["user_data"]["b"]["x"][0][783] = 1.5;
  json["user_data"]["b"]["x"][1][0] = nullptr;
  json["user_data"]["c"]["y"][0] = 62;
  json["user_data"]["c"]["y"][1] = -1;
  json["user_data"]["c"]["y"][2] = 0.5;
  json["user_data"]["c"]["y"][3] = "7";
  const TemporaryFolder folder;
  folder.write("file.json", json.dump());
  ImagePart part;
  EXPECT_EQ(read_leaf_file(folder.path() / "file.json", part), 8u);
  EXPECT_EQ(part.size(), 4u);
  EXPECT_EQ(part.ids, (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(part.pixels.size(), 4u * 784);
}

TEST(Leaf, KeysMayComeInAnyOrder) {
  nlohmann::ordered_json json;
  const nlohmann::json made = leaf_json(some_emnist(1), false);
  json["user_data"] = made["user_data"];
  json["num_samples"] = made["num_samples"];
  json["users"] = made["users"];
  const TemporaryFolder folder;
  folder.write("file.json", json.dump());
  ImagePart part;
  EXPECT_EQ(read_leaf_file(folder.path() / "file.json", part), 0u);
  EXPECT_EQ(part.size(), 12u);
}

TEST(Leaf, BadFilesAreRefused) {
  const nlohmann::json good = leaf_json(some_emnist(1), false);
  const std::string text = good.dump();
  EXPECT_NE(refusal(text.substr(0, text.size() / 2)).find("must be JSON"), std::string::npos);
  EXPECT_NE(refusal("").find("must be JSON"), std::string::npos);
  EXPECT_NE(refusal("[1, 2]").find("must have user_data"), std::string::npos);
  EXPECT_NE(refusal("{\"user_data\": [1]}").find("must have user_data"), std::string::npos);

  nlohmann::json json = good;
  json["user_data"]["b"]["y"].erase(0);
  EXPECT_NE(refusal(json.dump()).find("has 4 images and 3 labels"), std::string::npos);
  json = good;
  json["num_samples"][1] = 9;
  EXPECT_NE(refusal(json.dump()).find("must have 9 samples of user b, but has 4"),
            std::string::npos);
  json = good;
  json["num_samples"].erase(0);
  EXPECT_NE(refusal(json.dump()).find("one num_samples for each"), std::string::npos);
  json = good;
  json["users"][0] = "nobody";
  EXPECT_NE(refusal(json.dump()).find("of user nobody, but has 0"), std::string::npos);
  json = good;
  json["user_data"]["a"]["x"][0] = 0.5;
  EXPECT_NE(refusal(json.dump()).find("784 numbers per image"), std::string::npos);
  json["user_data"]["a"]["x"] = {{"k", 1}};
  EXPECT_NE(refusal(json.dump()).find("has an object there"), std::string::npos);
}

TEST(Leaf, AFolderWithoutFilesSaysHowToGetThem) {
  const TemporaryFolder folder;
  folder.write("train/notes.txt", "nothing");
  const std::string message = message_of<InputError>([&] { open_leaf({}, 1, folder.path()); });
  EXPECT_NE(message.find("train/*.json is missing"), std::string::npos) << message;
}

}  // namespace
}  // namespace fedep
