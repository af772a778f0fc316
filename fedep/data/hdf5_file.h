// HDF5 files as we read them: files that somebody else made. Only what lies in the file itself is
// opened: no soft or external link is followed, no data set is stored in another file or put
// together from others, no filter is loaded as a plugin. What a data set claims to hold is checked
// against an UnpackBudget before memory is asked for it.
//
//   const Hdf5File file("tff_hdf5", path);
//   const Hdf5Handle examples = open_hdf5_group(file.id(), "examples");
//   for (const std::string& name : hdf5_names(examples.id(), most)) …
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hdf5.h>

#include "fedep/data/data_file.h"

namespace fedep {

// An object of the HDF5 library, closed at the end of its life.
class Hdf5Handle {
 public:
  Hdf5Handle(hid_t id, herr_t (*close)(hid_t)) : id_(id), close_(close) {}
  Hdf5Handle(Hdf5Handle&& other) noexcept;
  Hdf5Handle(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(const Hdf5Handle&) = delete;
  Hdf5Handle& operator=(Hdf5Handle&&) = delete;
  ~Hdf5Handle();

  hid_t id() const { return id_; }
  explicit operator bool() const { return id_ >= 0; }

 private:
  hid_t id_;
  herr_t (*close_)(hid_t);
};

// While it lives, HDF5 does not print failed calls to stderr.
class Hdf5File {
 public:
  // Throws InputError if there is no such file, or it is none of HDF5.
  Hdf5File(std::string_view dataset, const std::filesystem::path& path);
  ~Hdf5File();
  Hdf5File(const Hdf5File&) = delete;
  Hdf5File& operator=(const Hdf5File&) = delete;

  hid_t id() const { return file_->id(); }
  UnpackBudget& budget() { return budget_; }
  // More than a file of its size can have.
  std::size_t most_names() const { return most_names_; }

 private:
  UnpackBudget budget_;
  std::size_t most_names_ = 0;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
  std::unique_ptr<Hdf5Handle> file_;
};

// Nothing if there is no such group or array in `in` itself.
Hdf5Handle open_hdf5_group(hid_t in, const std::string& name);
Hdf5Handle open_hdf5_array(hid_t in, const std::string& name);

// Names of what a group holds, in order; false if that cannot be read or there are more than `most`.
bool list_hdf5_names(hid_t group, std::size_t most, std::vector<std::string>& names);

// An array's extents; empty if it is none of 1 to 4 dimensions. Takes from the budget what reading
// it takes: `element` bytes for each, and one chunk as it is unpacked.
std::vector<hsize_t> hdf5_extents(hid_t array, std::size_t element, UnpackBudget& budget);

// Strings of a list; false if it is none, or cannot be read.
bool read_hdf5_strings(hid_t array, UnpackBudget& budget, std::vector<std::string>& out);

}  // namespace fedep
