# One short call per folder. Files are listed by name and sorted by their ending:
#
#   fedep_library(message                        # fedep_message, to others fedep::message
#     FILES gaussian.h record.h record.cpp       # *.h    checked to compile alone (target header_check)
#           record_test.cpp record_fuzz.cpp      # *_test.cpp -> fedep_message_test, *_fuzz.cpp -> record_fuzz
#     TORCH tensor.h tensor.cpp tensor_test.cpp  # only where FEDEP_WITH_TORCH is on
#     CUDA  kernel.h kernel.cu                   # only where FEDEP_WITH_CUDA is on
#     DEPENDS random                             # folders below, as tools/check_layers.py allows
#     LINK fmt::fmt Eigen3::Eigen                # libraries from outside
#     TEST_DEPENDS random TEST_LINK …)           # what the tests alone need
#
#   fedep_program(fedep FILES main.cpp DEPENDS sim page LINK CLI11::CLI11)    # leaves bin/fedep
#   fedep_script_test(cli.toy cli_toy_test.py $<TARGET_FILE:fedep>)           # a Python script under ctest

add_custom_target(header_check)

function(fedep_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;TORCH;CUDA;DEPENDS;LINK;TEST_DEPENDS;TEST_LINK")
  fedep_check_arguments(${name})
  fedep_sort_files()
  list(TRANSFORM arg_DEPENDS PREPEND fedep::)
  list(TRANSFORM arg_TEST_DEPENDS PREPEND fedep::)

  set(target fedep_${name})
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    fedep_use_torch_header(${target})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(fedep::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} ${scope} ${arg_DEPENDS} ${arg_LINK} ${torch_libraries})

  if(headers)
    target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${headers})
    set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
    add_dependencies(header_check ${target}_verify_interface_header_sets)
  endif()

  if(tests AND FEDEP_BUILD_TESTS)
    fedep_test_program(${name} FILES ${tests} LINK ${target} ${arg_TEST_DEPENDS} ${arg_TEST_LINK})
  endif()
  if(FEDEP_BUILD_FUZZ)
    foreach(file IN LISTS fuzzers)
      cmake_path(GET file STEM fuzzer)
      add_executable(${fuzzer} ${file})
      target_link_libraries(${fuzzer} PRIVATE ${target})
      target_link_options(${fuzzer} PRIVATE -fsanitize=fuzzer)
      set_target_properties(${fuzzer} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
    endforeach()
  endif()
endfunction()

function(fedep_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;TORCH;CUDA;DEPENDS;LINK")
  fedep_check_arguments(${name})
  fedep_sort_files()
  if(NOT sources)  # all of it needs torch
    return()
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND fedep::)
  add_executable(${name} ${sources} ${headers})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ${arg_LINK} ${torch_libraries})
  fedep_use_torch_header(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(tests)
    message(SEND_ERROR "${name}: ${tests} would not be run; tests belong to a fedep_library")
  endif()
endfunction()

# One program of GoogleTest cases. Each case is a ctest of its own, found by asking the program when ctest runs. A program with
# torch takes a second to start, so there the program is the ctest.
function(fedep_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;LINK")
  set(target fedep_${name}_test)
  add_executable(${target} ${arg_FILES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  if(torch_libraries)
    fedep_use_torch_header(${target})
    add_test(NAME ${name} COMMAND ${target})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  else()
    gtest_discover_tests(${target} TEST_PREFIX ${name}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                         PROPERTIES TIMEOUT 600)
  endif()
endfunction()

function(fedep_script_test name script)
  if(FEDEP_BUILD_TESTS)
    add_test(NAME ${name} COMMAND Python3::Interpreter -B ${CMAKE_CURRENT_SOURCE_DIR}/${script} ${ARGN})
    set_tests_properties(${name} PROPERTIES TIMEOUT 600)
  endif()
endfunction()

# From here on: parts of the functions above, which share their variables.

macro(fedep_check_arguments name)
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "${name}: expected a keyword such as FILES before ${arg_UNPARSED_ARGUMENTS}")
  endif()
endmacro()

# arg_FILES, arg_TORCH, arg_CUDA -> headers, sources, tests, fuzzers, and torch_libraries where torch is needed
macro(fedep_sort_files)
  set(headers ${arg_FILES})
  set(torch_libraries "")
  if(FEDEP_WITH_TORCH AND arg_TORCH)
    list(APPEND headers ${arg_TORCH})
    set(torch_libraries ${TORCH_LIBRARIES})
  endif()
  if(FEDEP_WITH_CUDA)
    list(APPEND headers ${arg_CUDA})
  endif()
  set(sources ${headers})
  list(FILTER headers INCLUDE REGEX "\\.h$")
  list(FILTER sources EXCLUDE REGEX "\\.h$")
  set(tests ${sources})
  set(fuzzers ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.c[pu]p?$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.c[pu]p?$")
endmacro()

macro(fedep_use_torch_header target)
  if(torch_libraries)
    target_precompile_headers(${target} REUSE_FROM fedep_torch_header)
  endif()
endmacro()
