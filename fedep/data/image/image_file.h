// Images to be predicted, from a file of the format that the data set they resemble comes in,
// prepared as its held-out images are. Rows of registry.cpp say which data set has which.
#pragma once

#include <filesystem>

#include "fedep/data/batch.h"
#include "fedep/data/dataset.h"

namespace fedep {

// All throw InputError for a file that is missing, empty, of another format or of other extents.

// Records of 3,074 bytes as in CIFAR-100's test.bin, whose labels are not looked at; centre crops,
// standardised, and projected where the data set's are.
Batch read_cifar_records(const std::filesystem::path& file, const DatasetInfo& data,
                         const PcaProjection* projection);
// An IDX file of unsigned bytes, over 255, in the data set's own sense of dark and light.
Batch read_byte_images(const std::filesystem::path& file, const DatasetInfo& data,
                       const PcaProjection* projection);

}  // namespace fedep
