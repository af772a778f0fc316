#include "fedep/data/image/tff_hdf5.h"

#include <functional>
#include <vector>

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

// Makes examples/a with a label array that `make` fills and links.
std::filesystem::path one_client(const TemporaryFolder& folder,
                                 const std::function<void(hid_t client)>& make) {
  const std::filesystem::path path = folder.path() / "file.h5";
  const hid_t file = H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t group = H5Gcreate2(file, "examples", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t client = H5Gcreate2(group, "a", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  make(client);
  H5Gclose(client);
  H5Gclose(group);
  H5Fclose(file);
  return path;
}

void make_array(hid_t in, const char* name, std::vector<hsize_t> shape, hid_t creation) {
  const hid_t space = H5Screate_simple(int(shape.size()), shape.data(), nullptr);
  H5Dclose(H5Dcreate2(in, name, H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
  H5Sclose(space);
}

TEST(TffHdf5, AnArrayThatOnlyClaimsItsNumbersIsRefusedBeforeMemoryIsAskedFor) {
  const TemporaryFolder folder;
  const auto path = one_client(folder, [](hid_t client) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {1, 1000};
    H5Pset_chunk(creation, 2, chunk);
    make_array(client, "label", {1'000'000, 1000}, creation);  // 8 GB as we read it
    H5Pclose(creation);
  });
  ASSERT_LT(std::filesystem::file_size(path), 20'000u);
  EXPECT_NE(refusal(path).find("must hold at most"), std::string::npos) << refusal(path);
}

TEST(TffHdf5, AChunkThatUnpacksToTooMuchIsRefused) {
  const TemporaryFolder folder;
  const auto path = one_client(folder, [](hid_t client) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    const hsize_t chunk[] = {1u << 28};
    H5Pset_chunk(creation, 1, chunk);
    const hsize_t shape[] = {3};
    const hsize_t most[] = {H5S_UNLIMITED};
    const hid_t space = H5Screate_simple(1, shape, most);
    H5Dclose(
        H5Dcreate2(client, "label", H5T_NATIVE_INT32, space, H5P_DEFAULT, creation, H5P_DEFAULT));
    H5Sclose(space);
    H5Pclose(creation);
  });
  EXPECT_NE(refusal(path).find("must hold at most"), std::string::npos) << refusal(path);
}

TEST(TffHdf5, NothingIsReadFromAnotherFile) {
  const TemporaryFolder folder;
  const auto secret = folder.write("secret", std::string_view("0123456789abcdef"));
  const auto stored_elsewhere = one_client(folder, [&](hid_t client) {
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_external(creation, secret.c_str(), 0, 12);
    make_array(client, "label", {3}, creation);
    H5Pclose(creation);
  });
  EXPECT_NE(refusal(stored_elsewhere).find("must have a/label, but has not"), std::string::npos)
      << refusal(stored_elsewhere);
  const auto linked = one_client(folder, [&](hid_t client) {
    H5Lcreate_external("other.h5", "/label", client, "label", H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_NE(refusal(linked).find("must have a/label, but has not"), std::string::npos);
}

TEST(TffHdf5, AMissingFileSaysHowToGetIt) {
  const TemporaryFolder folder;
  const std::string message = message_of<InputError>([&] { open_tff_hdf5({}, 1, folder.path()); });
  EXPECT_NE(message.find("fed_emnist_train.h5 is missing"), std::string::npos) << message;
}

}  // namespace
}  // namespace fedep
