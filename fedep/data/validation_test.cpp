#include "fedep/data/validation.h"

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "fedep/data/append_batch.h"
#include "fedep/data/calibration_rows.h"
#include "fedep/data/holdout.h"
#include "fedep/data/memory_dataset.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

// Example i has its number as only feature, value and label; clients have 10, 1 and 25 of them.
std::unique_ptr<Dataset> numbered(const std::vector<std::size_t>& sizes = {10, 1, 25}) {
  Batch rows;
  ClientRows clients, test_clients;
  for (std::size_t k = 0; k < sizes.size(); ++k) {
    for (std::size_t i = 0; i < sizes[k]; ++i) {
      rows.sparse.columns.push_back(std::uint32_t(rows.size));
      rows.sparse.values.push_back(float(rows.size));
      rows.sparse.offsets.push_back(std::uint32_t(rows.sparse.columns.size()));
      rows.labels.push_back(std::int32_t(rows.size++));
    }
    clients.add("client-" + std::to_string(k), sizes[k]);
  }
  Batch test = rows_of(rows, 0, 1, 0);
  test.labels[0] = 35;
  test_clients.add("stranger", 1);
  const DatasetInfo info{.name = "numbered",
                         .features = {36},
                         .sparse = true,
                         .outputs = 36,
                         .skipped_records = 0,
                         .feature_names = {},
                         .output_names = {}};
  return memory_dataset(info, {clients, batch_rows(rows)}, {test_clients, batch_rows(test)});
}

std::map<std::string, std::set<std::int32_t>> training_labels(const Dataset& data) {
  std::map<std::string, std::set<std::int32_t>> out;
  for (std::size_t k = 0; k < data.clients().size(); ++k) {
    const Batch batch = training_batch(data, k);
    out[data.clients()[k].first] = {batch.labels.begin(), batch.labels.end()};
  }
  return out;
}

TEST(ValidationDataset, PartsEveryClientsExamplesIntoTrainingAndValidation) {
  const auto whole = numbered(), parted = validation_dataset(numbered(), 0.2);
  const auto before = training_labels(*whole);
  auto after = training_labels(*parted);
  const Batch held = test_batch(*parted);
  ASSERT_EQ(held.size, 2u + 0u + 5u);  // of one example none is held out
  for (std::size_t i = 0; i < held.size; ++i) {
    auto& own = after[parted->test_clients()[parted->test_client(i)]];
    EXPECT_TRUE(own.insert(held.labels[i]).second) << "an example is in both parts";
  }
  EXPECT_EQ(after, before);
}

// Who is held out here says nothing of who was held out for the test: of 2,000 halves, a half of a
// half falls together, 500 with a deviation of 11.
TEST(ValidationDataset, IsDrawnApartFromTheTestSet) {
  const std::size_t n = 2000;
  const auto data = validation_dataset(numbered({n}), 0.5);
  const std::vector<bool> of_test = held_out(data->clients()[0].first, n, 0.5);
  const Batch held = test_batch(*data);
  std::size_t in_both = 0;
  for (const std::int32_t label : held.labels) in_both += of_test[std::size_t(label)];
  EXPECT_EQ(held.size, n / 2);
  EXPECT_NEAR(double(in_both), 500, 5 * 11.2);
}

// Three examples of a patient each, also in what calibration takes of what validation left.
TEST(ValidationDataset, HoldsAPatientsExamplesTogether) {
  Batch rows;
  std::vector<std::uint32_t> patients;
  for (std::int32_t i = 0; i < 90; ++i) {
    rows.dense.push_back(float(i));
    rows.labels.push_back(i);
    patients.push_back(std::uint32_t(i % 30));
    ++rows.size;
  }
  ClientRows clients;
  clients.add("a", 40);  // of a patient with examples in both, each has its own part
  clients.add("b", 50);
  const DatasetInfo info{
      .name = "grouped", .features = {1}, .outputs = 90, .feature_names = {}, .output_names = {}};
  const auto all = [&] {
    return memory_dataset(info, {clients, batch_rows(rows), patients}, {{}, batch_rows({})});
  };
  const auto data = without_calibration_rows(validation_dataset(all(), 0.3), 0.3);
  std::size_t held = 0;
  for (std::size_t c = 0; c < 2; ++c) {
    std::set<std::uint32_t> training, validation, calibration;
    const Batch batch = training_batch(*data, c);
    for (const std::int32_t i : batch.labels) training.insert(patients[std::size_t(i)]);
    for (const auto& [from, to] :
         {std::pair<const Dataset*, std::set<std::uint32_t>*>(data.get(), &validation),
          {data->calibration(), &calibration}}) {
      const Batch test = test_batch(*from);
      for (std::size_t i = 0; i < test.size; ++i) {
        if (from->test_client(i) == c) to->insert(patients[std::size_t(test.labels[i])]);
      }
    }
    for (const std::uint32_t patient : validation) {
      EXPECT_FALSE(training.contains(patient) || calibration.contains(patient));
    }
    for (const std::uint32_t patient : calibration) EXPECT_FALSE(training.contains(patient));
    held += validation.size() * calibration.size();
    EXPECT_EQ(data->groups(c).size(), batch.size);
  }
  EXPECT_GT(held, 0u) << "else this shows nothing";
}

TEST(ValidationDataset, GivesTheSameRowsInAnyPieces) {
  const auto data = validation_dataset(numbered(), 0.2);
  const Batch all = test_batch(*data);
  Batch pieces, piece;
  for (std::size_t i = 0; i < data->test_size(); ++i) {
    data->test_batch(i, i + 1, piece);
    EXPECT_EQ(piece.sparse.columns, std::vector{std::uint32_t(piece.labels[0])});
    append(piece, pieces);
  }
  EXPECT_EQ(pieces, all);
  EXPECT_EQ(rows_of(all, 2, 5, 36), rows_of(pieces, 2, 5, 36));
}

TEST(ValidationDataset, IsTheSameEveryTimeAndRefusesAPartThatIsNone) {
  EXPECT_EQ(training_labels(*validation_dataset(numbered(), 0.2)),
            training_labels(*validation_dataset(numbered(), 0.2)));
  EXPECT_THROW(validation_dataset(numbered(), -0.1), InputError);
  EXPECT_THROW(validation_dataset(numbered(), 1.5), InputError);
}

}  // namespace
}  // namespace fedep
