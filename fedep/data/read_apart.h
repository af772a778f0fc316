// Reads a file in a process of its own. HDF5's library was not made for files of people who wish us
// ill: a few changed bytes make it crash or never end. Then that process does, and the file is refused.
//
//   read_apart("tff_hdf5", path,
//              [&](const RecordSender& send) { send(sections); },        // in the other process
//              [&](Record record) { use(record); });                     // here, one by one
//
// Whatever comes from there is checked as if it came over a network (message/record.h).
#pragma once

#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "fedep/message/record.h"

namespace fedep {

using RecordSender = std::function<void(std::span<const SectionView>)>;

// InputError and RunError of `read` are thrown here. Throws InputError if the process died, or took
// more CPU than 2 s and 1 s for every megabyte of the file.
void read_apart(std::string_view dataset, const std::filesystem::path& path,
                const std::function<void(const RecordSender&)>& read,
                const std::function<void(Record)>& take);

}  // namespace fedep
