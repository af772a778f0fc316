# Everything comes from the system (tools/setup installs it on Debian) or from CMAKE_PREFIX_PATH.

find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(tomlplusplus REQUIRED)
find_package(CLI11 REQUIRED)
find_package(Eigen3 REQUIRED NO_MODULE)

include(own_libraries)

# Files of data sets.
find_package(HDF5 REQUIRED COMPONENTS C)
find_package(SQLite3 REQUIRED)
find_package(ZLIB REQUIRED)

if(FEDEP_BUILD_TESTS)
  # Debian's, for Debian's selenium and torch; in the environment of tools/peers, where that is there.
  foreach(python "${PROJECT_SOURCE_DIR}/build/peers/bin/python3" /usr/bin/python3)
    if(NOT Python3_EXECUTABLE AND EXISTS "${python}")
      set(Python3_EXECUTABLE "${python}")
    endif()
  endforeach()
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  if(FEDEP_GOOGLETEST_SOURCE)
    set(INSTALL_GTEST OFF)
    add_subdirectory(${FEDEP_GOOGLETEST_SOURCE} googletest EXCLUDE_FROM_ALL SYSTEM)
    foreach(target gtest gtest_main gmock)
      target_compile_options(${target} PRIVATE -w)
    endforeach()
  else()
    find_package(GTest REQUIRED)
  endif()
  include(GoogleTest)
endif()
if(FEDEP_BUILD_BENCH)
  find_package(benchmark REQUIRED)
endif()

if(FEDEP_WITH_MPI)
  find_package(MPI REQUIRED COMPONENTS C)
endif()

if(FEDEP_WITH_CUDA)
  # The runtime is linked statically: the program starts, and says what is missing, where there is no GPU.
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # Hopper: H100, H200
  endif()
  enable_language(CUDA)
  set(CMAKE_CUDA_STANDARD 17)
  set(CMAKE_CUDA_STANDARD_REQUIRED ON)
  # Formulas of one number are constexpr functions that both compilers read (optim/optimizer_step.h).
  string(APPEND CMAKE_CUDA_FLAGS " --expt-relaxed-constexpr")
  set(CMAKE_CUDA_EXTENSIONS OFF)
  find_package(CUDAToolkit REQUIRED)
endif()

if(FEDEP_WITH_TORCH)
  # A torch with CUDA would have our kernels compiled for all GPUs that it knows, with its flags.
  set(own_cuda_architectures ${CMAKE_CUDA_ARCHITECTURES})
  set(own_cuda_flags "${CMAKE_CUDA_FLAGS}")
  find_package(Torch REQUIRED)
  set(CMAKE_CUDA_ARCHITECTURES ${own_cuda_architectures})
  set(CMAKE_CUDA_FLAGS "${own_cuda_flags}")
  # Older wheels of torch carry the old std::string; then all of us must.
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  list(REMOVE_ITEM torch_flags -D_GLIBCXX_USE_CXX11_ABI=1)  # the compiler's own; named, ccache would compile all files again
  add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:${torch_flags}>")

  # torch/torch.h takes many seconds to read: read once here, reused by every target with torch files.
  file(WRITE ${PROJECT_BINARY_DIR}/torch_header.cpp "// Owns the precompiled torch/torch.h.\n")
  add_library(fedep_torch_header OBJECT ${PROJECT_BINARY_DIR}/torch_header.cpp)
  target_link_libraries(fedep_torch_header PUBLIC ${TORCH_LIBRARIES})
  target_include_directories(fedep_torch_header SYSTEM PUBLIC ${TORCH_INCLUDE_DIRS})
  target_compile_definitions(fedep_torch_header PRIVATE FMT_HEADER_ONLY)
  target_precompile_headers(fedep_torch_header PRIVATE <torch/torch.h>)
endif()

# TorchScript modules on the GPU need a torch that was built with CUDA.
set(FEDEP_TORCH_ON_CUDA OFF)
if(FEDEP_WITH_CUDA AND TARGET torch_cuda)
  set(FEDEP_TORCH_ON_CUDA ON)
  set(CMAKE_CUDA_RUNTIME_LIBRARY Shared)  # torch's, so that there is one
endif()
