#include "fedep/data/image/emnist62.h"

#include <array>
#include <system_error>

#include <fmt/format.h>

#include "fedep/data/data_file.h"
#include "fedep/data/image/femnist.h"
#include "fedep/data/image/leaf.h"
#include "fedep/data/image/tff_hdf5.h"
#include "fedep/data/image/tff_sqlite.h"
#include "fedep/message/error.h"

namespace fedep {
namespace {

namespace fs = std::filesystem;

struct Layout {
  const char* mark;  // what the folder has if it is this one
  std::unique_ptr<Dataset> (*open)(const DataSettings&, std::uint64_t, const fs::path&);
};

constexpr std::array kLayouts{Layout{"images.u8", open_femnist}, Layout{"train", open_leaf},
                              Layout{"fed_emnist_train.h5", open_tff_hdf5},
                              Layout{"emnist_all.sqlite", open_tff_sqlite}};

}  // namespace

std::unique_ptr<Dataset> open_emnist62(const DataSettings& settings, std::uint64_t seed,
                                       const fs::path& folder) {
  const fs::path here = folder / settings.path;
  const Layout* found = nullptr;
  for (const Layout& layout : kLayouts) {
    std::error_code ignored;
    if (!fs::exists(here / layout.mark, ignored)) continue;
    if (found) {
      throw InputError(
          fmt::format("emnist62: {} must have one layout of the data, but has {} and {}",
                      here.string(), found->mark, layout.mark));
    }
    found = &layout;
  }
  if (!found) {
    throw InputError(missing_data(
        "emnist62",
        here / "images.u8 (or LEAF's train/, TFF's fed_emnist_train.h5, emnist_all.sqlite)"));
  }
  return found->open(settings, seed, folder);
}

}  // namespace fedep
