#include "fedep/data/unseen_classes.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "fedep/data/calibration_rows.h"
#include "fedep/data/made_up/random_images.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/test_batches.h"
#include "fedep/data/validation.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using Labels = std::vector<std::int32_t>;

// A client for each list of labels; the only feature tells examples apart, from `first` on.
Part part_of(const std::vector<std::pair<std::string, Labels>>& clients, float first) {
  Part part;
  Batch rows;
  for (const auto& [id, labels] : clients) {
    part.clients.add(id, labels.size());
    for (const std::int32_t label : labels) {
      rows.dense.push_back(first + float(rows.size++));
      rows.labels.push_back(label);
    }
  }
  part.rows = batch_rows(std::move(rows));
  return part;
}

DatasetInfo letters() {
  DatasetInfo info;
  info.name = "letters";
  info.features = {1};
  info.outputs = 4;
  info.output_names = {"a", "b", "c", "d"};
  return info;
}

std::unique_ptr<Dataset> made(DatasetInfo info = letters()) {
  return memory_dataset(std::move(info),
                        part_of({{"x", {0, 1, 2, 3, 1}}, {"only_b", {1, 1}}, {"z", {3, 3, 0}}}, 0),
                        part_of({{"x", {1, 0, 1}}, {"z", {2, 3, 1, 1}}}, 100));
}

std::string refusal(std::unique_ptr<Dataset> data, const std::vector<std::string>& classes) {
  try {
    without_classes(std::move(data), classes, 0);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

TEST(UnseenClasses, LeaveTheDataThatNeverHadThem) {
  const auto data = without_classes(made(), {"b"}, 0);
  EXPECT_EQ(data->info().outputs, 3u);
  EXPECT_EQ(data->info().output_names, (std::vector<std::string>{"a", "c", "d"}));
  ASSERT_EQ(data->clients().size(), 2u);  // only_b has nothing left
  EXPECT_EQ(data->clients()[0], (std::pair<std::string, std::size_t>("x", 3)));
  EXPECT_EQ(data->clients()[1], (std::pair<std::string, std::size_t>("z", 3)));
  EXPECT_EQ(training_batch(*data, 0).dense, (std::vector<float>{0, 2, 3}));
  EXPECT_EQ(training_batch(*data, 0).labels, (Labels{0, 1, 2}));
  EXPECT_EQ(training_batch(*data, 1).dense, (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(training_batch(*data, 1).labels, (Labels{2, 2, 0}));
  EXPECT_EQ(test_batch(*data).dense, (std::vector<float>{101, 103, 104}));
  EXPECT_EQ(test_batch(*data).labels, (Labels{0, 1, 2}));
  EXPECT_EQ(data->test_clients()[data->test_client(0)], "x");
  EXPECT_EQ(data->test_clients()[data->test_client(1)], "z");
}

TEST(UnseenClasses, KeepTheirHeldOutExamplesWithoutLabels) {
  const auto data = without_classes(made(), {"b"}, 0);
  ASSERT_NE(data->unlike(), nullptr);
  const Batch unlike = test_batch(*data->unlike());
  EXPECT_EQ(unlike.dense, (std::vector<float>{100, 102, 105, 106}));
  EXPECT_TRUE(unlike.labels.empty());
  EXPECT_EQ(unlike.size, 4u);
  Batch middle;
  data->unlike()->test_batch(1, 3, middle);
  EXPECT_EQ(middle.dense, (std::vector<float>{102, 105}));
  EXPECT_EQ(made()->unlike(), nullptr);
}

TEST(UnseenClasses, AreTheSameByNameAndByNumberHoweverOften) {
  for (const auto& classes :
       {std::vector<std::string>{"b", "d"}, {"1", "3"}, {"d", "1"}, {"b", "d", "1"}}) {
    const auto data = without_classes(made(), classes, 0);
    EXPECT_EQ(data->info().output_names, (std::vector<std::string>{"a", "c"}));
    EXPECT_EQ(test_batch(*data).dense, (std::vector<float>{101, 103}));
  }
  // A name that is a number means the class of that name.
  DatasetInfo info = letters();
  info.output_names = {"3", "2", "1", "0"};
  EXPECT_EQ(without_classes(made(info), {"3"}, 0)->info().output_names,
            (std::vector<std::string>{"2", "1", "0"}));
}

TEST(UnseenClasses, LeaveTheNumbersOfClassesWithoutNames) {
  DatasetInfo info = letters();
  info.output_names = {};
  EXPECT_EQ(without_classes(made(info), {"1"}, 0)->info().output_names,
            (std::vector<std::string>{"0", "2", "3"}));
}

TEST(UnseenClasses, LeaveOutClientsThatKeepTooFewExamples) {
  const auto data = without_classes(made(), {"d"}, 3);
  ASSERT_EQ(data->clients().size(), 1u);
  EXPECT_EQ(data->clients()[0], (std::pair<std::string, std::size_t>("x", 4)));
  EXPECT_EQ(refusal(made(), {"a", "d"}), "");
  EXPECT_THROW(without_classes(made(), {"a", "d"}, 4), InputError);
}

TEST(UnseenClasses, AreRefusedInWordsWhereTheyCannotBe) {
  EXPECT_EQ(refusal(made(), {"e"}),
            "data.unseen_classes must be names of classes or numbers from 0 to 3, but has e");
  EXPECT_EQ(refusal(made(), {"4"}),
            "data.unseen_classes must be names of classes or numbers from 0 to 3, but has 4");
  EXPECT_EQ(refusal(made(), {"-1"}),
            "data.unseen_classes must be names of classes or numbers from 0 to 3, but has -1");
  EXPECT_EQ(refusal(made(), {"a", "b", "c"}),
            "data.unseen_classes must leave two of the 4 classes or more, but leaves 1");
  DatasetInfo info = letters();
  info.output_names = {};
  EXPECT_EQ(refusal(made(info), {"b"}),
            "data.unseen_classes must be numbers from 0 to 3, but has b");
  info.output_names = {"bear", "cat", "dog", "fox"};
  EXPECT_EQ(
      refusal(made(info), {"bera"}),
      "data.unseen_classes must be names of classes or numbers from 0 to 3, but has bera; did "
      "you mean bear?");
  info.target = TargetKind::binary;
  info.outputs = 1;
  EXPECT_NE(refusal(made(info), {"0"}).find("must be empty for letters"), std::string::npos);
}

TEST(UnseenClasses, StayUnseenInValidationAndCalibrationRows) {
  DataSettings settings{.name = "random_images", .partition = "iid", .clients = 4};
  settings.examples = 100;
  const auto open = [&] { return open_random_images(settings, 7, ""); };
  const auto validation = without_classes(validation_dataset(open(), 0.5), {"0", "1"}, 0);
  const std::size_t whole = validation_dataset(open(), 0.5)->test_size();
  EXPECT_EQ(validation->test_size() + validation->unlike()->test_size(), whole);
  EXPECT_GT(validation->unlike()->test_size(), 0u);
  const auto calibrated = without_calibration_rows(without_classes(open(), {"0", "1"}, 0), 0.3);
  ASSERT_NE(calibrated->unlike(), nullptr);
  EXPECT_GT(calibrated->unlike()->test_size(), 0u);
  const Batch rows = test_batch(*calibrated->calibration());
  EXPECT_GT(rows.size, 0u);
  EXPECT_LT(*std::max_element(rows.labels.begin(), rows.labels.end()), 8);
  EXPECT_GE(*std::min_element(rows.labels.begin(), rows.labels.end()), 0);
}

// More of them than are in memory at a time.
TEST(UnseenClasses, AreFoundAmongManyExamples) {
  std::vector<std::int32_t> labels;
  for (int i = 0; i < 2500; ++i) labels.push_back(i % 7 == 0 ? 1 : i % 2 == 0 ? 2 : 3);
  const auto data = without_classes(
      memory_dataset(letters(), part_of({{"x", labels}}, 0), part_of({{"x", labels}}, 5000)), {"b"},
      0);
  std::vector<float> train, seen, unlike;
  for (int i = 0; i < 2500; ++i) {
    if (i % 7 != 0) train.push_back(float(i));
    (i % 7 == 0 ? unlike : seen).push_back(float(5000 + i));
  }
  EXPECT_EQ(training_batch(*data, 0).dense, train);
  EXPECT_EQ(test_batch(*data).dense, seen);
  EXPECT_EQ(test_batch(*data->unlike()).dense, unlike);
}

// What a GPU makes batches of has the batches' labels, and the crops of whoever sees all classes.
TEST(UnseenClasses, AreGoneFromRawImagesToo) {
  DataSettings settings{.name = "random_images", .partition = "iid", .clients = 3};
  settings.examples = 60;
  const auto everything = open_random_images(settings, 3, "");
  const auto data = without_classes(open_random_images(settings, 3, ""), {"4", "9"}, 0);
  const auto all = everything->raw_images(), raw = data->raw_images();
  ASSERT_TRUE(all && raw);
  for (std::size_t c = 0; c < 3; ++c) {
    const Batch batch = training_batch(*data, c);
    ASSERT_EQ(raw->clients[c].size(), batch.size);
    for (std::size_t i = 0; i < batch.size; ++i) {
      EXPECT_EQ(raw->labels[raw->clients[c][i]], batch.labels[i]);
      EXPECT_EQ(raw->clients[c][i], all->clients[c][raw->numbers[c][i]]);
    }
  }
}

}  // namespace
}  // namespace fedep
