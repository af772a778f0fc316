#include "fedep/data/image/tff_hdf5.h"

#include <gtest/gtest.h>

#include "fedep/data/image/test_emnist_files.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

std::string refusal(const std::filesystem::path& path) {
  ImagePart part;
  return message_of<InputError>([&] { read_tff_hdf5(path, part); });
}

TEST(TffHdf5, BadRecordsAreSkippedAndCounted) {
  TestImages images = some_emnist(1);
  images[0].label = 62;
  images[2].label = -1;
  images[5].pixels[9] = 1.5;
  images[6].pixels[9] = std::numeric_limits<double>::quiet_NaN();
  const TemporaryFolder folder;
  write_hdf5(folder, images);
  const auto data = open_tff_hdf5({}, 1, folder.path());
  EXPECT_EQ(data->info().skipped_records, 4u);
  EXPECT_EQ(data->clients()[0], (std::pair<std::string, std::size_t>{"a", 1}));
}

TEST(TffHdf5, BadFilesAreRefused) {
  const TemporaryFolder folder;
  folder.write("not.h5", "this is no HDF5 file");
  EXPECT_NE(refusal(folder.path() / "not.h5").find("must be an HDF5 file"), std::string::npos);

  write_hdf5_file(folder.path() / "good.h5", some_emnist(1), false);
  std::filesystem::resize_file(folder.path() / "good.h5", 4000);
  EXPECT_NE(refusal(folder.path() / "good.h5"), "");

  const hid_t file =
      H5Fcreate((folder.path() / "empty.h5").c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_NE(refusal(folder.path() / "empty.h5").find("must have a group examples"),
            std::string::npos);

  TestImages narrow = some_emnist(1);
  for (TestImage& image : narrow) image.pixels.resize(28 * 27);
  write_hdf5_file(folder.path() / "narrow.h5", narrow, false);
  EXPECT_NE(refusal(folder.path() / "narrow.h5").find("shape [3, 28, 28], but has [3, 28, 27]"),
            std::string::npos)
      << refusal(folder.path() / "narrow.h5");
}

TEST(TffHdf5, AClientWithoutLabelsIsRefused) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder.path() / "file.h5";
  write_hdf5_file(path, some_emnist(1), false);
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  H5Ldelete(file, "examples/b/label", H5P_DEFAULT);
  H5Fclose(file);
  EXPECT_NE(refusal(path).find("must have b/label, but has not"), std::string::npos);
}

TEST(TffHdf5, AMissingFileSaysHowToGetIt) {
  const TemporaryFolder folder;
  const std::string message = message_of<InputError>([&] { open_tff_hdf5({}, 1, folder.path()); });
  EXPECT_NE(message.find("fed_emnist_train.h5 is missing"), std::string::npos) << message;
}

}  // namespace
}  // namespace fedep
