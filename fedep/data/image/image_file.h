// Images to be predicted, from a file of the format that the data set they resemble comes in,
// prepared as its held-out images are.
//
//   const Batch images = read_images("new-images-idx3-ubyte", data.info());
//
// For cifar100: records of 3,074 bytes as in test.bin, whose labels are not looked at; centre crops,
// standardised. For idx, emnist62, femnist and leaf: an IDX file of unsigned bytes, over 255, in the
// data set's own sense of dark and light.
#pragma once

#include <filesystem>

#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"

namespace fedep {

// Throws InputError for a file that is missing, empty, of another format or of other extents, and
// for data whose images come from no such file.
Batch read_images(const std::filesystem::path& file, const DatasetInfo& data);

}  // namespace fedep
