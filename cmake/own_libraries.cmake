# Libraries that come without a package for CMake: fedep::xxhash, fedep::openblas. An installed fedep has this file too, and
# finds them where it is used, which may be elsewhere than where they were when it was built.

# xxHash is used inline, from its header alone.
find_path(XXHASH_INCLUDE_DIR xxhash.h REQUIRED)
add_library(fedep::xxhash INTERFACE IMPORTED)
set_target_properties(fedep::xxhash PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${XXHASH_INCLUDE_DIR}")

# The matrix products of models.
find_library(OPENBLAS_LIBRARY openblas REQUIRED)
find_path(OPENBLAS_INCLUDE_DIR NAMES cblas-openblas.h REQUIRED)
add_library(fedep::openblas INTERFACE IMPORTED)
set_target_properties(fedep::openblas PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${OPENBLAS_INCLUDE_DIR}"
                                                 INTERFACE_LINK_LIBRARIES "${OPENBLAS_LIBRARY}")
