#include "fedep/data/image/emnist62.h"

#include <gtest/gtest.h>

#include "fedep/data/image/test_emnist_files.h"
#include "fedep/data/test_batches.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

using Writer = void (*)(const TemporaryFolder&, const TestImages&);

TEST(Emnist62, EveryLayoutGivesTheSameData) {
  const TestImages images = some_emnist(1);
  const TemporaryFolder plain;
  write_femnist(plain, images);
  const auto expected = open_emnist62({}, 1, plain.path());
  ASSERT_EQ(expected->clients().size(), 3u);
  for (const Writer writer : {Writer(write_leaf), Writer(write_hdf5), Writer(write_sqlite)}) {
    const TemporaryFolder folder;
    writer(folder, images);
    const auto data = open_emnist62({}, 1, folder.path());
    EXPECT_EQ(data->clients(), expected->clients()) << data->info().name;
    EXPECT_EQ(data->test_clients(), expected->test_clients());
    EXPECT_EQ(data->info().skipped_records, 0u);
    for (std::size_t c = 0; c < 3; ++c)
      EXPECT_EQ(training_batch(*data, c), training_batch(*expected, c));
    EXPECT_EQ(test_batch(*data), test_batch(*expected));
  }
}

TEST(Emnist62, PixelsAndLabelsComeBackAsTheyWere) {
  const TestImages images = some_emnist(2);
  const TemporaryFolder folder;
  write_sqlite(folder, images);
  const auto data = open_emnist62({}, 1, folder.path());
  const Batch batch = training_batch(*data, 1);  // client b
  std::size_t row = 0;
  for (const TestImage& image : images) {
    if (image.client != "b" || image.test) continue;
    EXPECT_EQ(batch.labels[row], image.label);
    for (std::size_t k = 0; k < 784; ++k) {
      ASSERT_EQ(batch.dense[row * 784 + k], float(image.pixels[k])) << k;
    }
    ++row;
  }
  EXPECT_EQ(row, batch.size);
}

TEST(Emnist62, AFolderWithoutAnyLayoutSaysWhatIsMissing) {
  const TemporaryFolder folder;
  const std::string message = message_of<InputError>([&] { open_emnist62({}, 1, folder.path()); });
  EXPECT_NE(message.find("emnist_all.sqlite"), std::string::npos) << message;
  EXPECT_NE(message.find("$FEDEP_DATA"), std::string::npos) << message;
}

TEST(Emnist62, AFolderWithTwoLayoutsIsRefused) {
  const TemporaryFolder folder;
  write_leaf(folder, some_emnist(1));
  write_hdf5(folder, some_emnist(1));
  const std::string message = message_of<InputError>([&] { open_emnist62({}, 1, folder.path()); });
  EXPECT_NE(message.find("train and fed_emnist_train.h5"), std::string::npos) << message;
}

}  // namespace
}  // namespace fedep
