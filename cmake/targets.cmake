# One short call per folder. Files are listed by name and sorted by their ending:
#
#   fedep_library(message                        # fedep_message, to others fedep::message, installed if in fedep/
#     FILES gaussian.h record.h record.cpp       # *.h    checked to compile alone (target header_check)
#           record_test.cpp record_fuzz.cpp      # *_test.cpp -> fedep_message_test, *_fuzz.cpp -> record_fuzz
#     PUBLIC gaussian.h                          # of these headers: what is installed, and what those include
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
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;PUBLIC;TORCH;CUDA;DEPENDS;LINK;TEST_DEPENDS;TEST_LINK")
  fedep_check_arguments(${name})
  fedep_sort_files()
  list(TRANSFORM arg_DEPENDS PREPEND fedep::)
  list(TRANSFORM arg_TEST_DEPENDS PREPEND fedep::)

  set(target fedep_${name})
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(fedep::${name} ALIAS ${target})
  target_include_directories(${target} ${scope} $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>)
  target_compile_features(${target} ${scope} cxx_std_20)
  target_link_libraries(${target} ${scope} ${arg_DEPENDS} ${arg_LINK})
  if(torch_sources)
    fedep_add_torch_sources(${target} ${torch_sources})
  endif()

  set(internal_headers ${headers})
  if(arg_PUBLIC)
    fedep_check_public(${name})
    list(REMOVE_ITEM internal_headers ${arg_PUBLIC})
    fedep_check_headers(${target} ${scope} ${arg_PUBLIC})
  endif()
  if(internal_headers)  # a target of their own, which nobody installs
    add_library(${target}_internal INTERFACE)
    target_link_libraries(${target}_internal INTERFACE ${target})
    fedep_check_headers(${target}_internal INTERFACE ${internal_headers})
  endif()

  # Folders of fedep/ are what an installed package has; app and test stay here.
  if(CMAKE_CURRENT_SOURCE_DIR MATCHES "^${PROJECT_SOURCE_DIR}/fedep/")
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
    if(arg_PUBLIC)
      install(TARGETS ${target} EXPORT fedep FILE_SET HEADERS)
    else()
      install(TARGETS ${target} EXPORT fedep)
    endif()
  endif()

  if(tests AND FEDEP_BUILD_TESTS)
    fedep_test_program(${name} FILES ${tests} TORCH ${torch_tests} LINK ${target} ${arg_TEST_DEPENDS} ${arg_TEST_LINK})
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
  if(NOT sources AND NOT torch_sources)  # all of it needs torch
    return()
  endif()
  list(TRANSFORM arg_DEPENDS PREPEND fedep::)
  add_executable(${name} ${sources} ${headers})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_DEPENDS} ${arg_LINK})
  if(torch_sources)
    fedep_add_torch_sources(${name} ${torch_sources})
  endif()
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(tests)
    message(SEND_ERROR "${name}: ${tests} would not be run; tests belong to a fedep_library")
  endif()
endfunction()

# One program of GoogleTest cases. Each case is a ctest of its own, found by asking the program when ctest runs. A program with
# torch takes a second to start, so there the program is the ctest.
function(fedep_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "FILES;TORCH;LINK")
  set(target fedep_${name}_test)
  add_executable(${target} ${arg_FILES})
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${target} PRIVATE ${arg_LINK} GTest::gmock GTest::gtest_main)
  if(arg_TORCH)
    fedep_add_torch_sources(${target} ${arg_TORCH})
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

macro(fedep_check_public name)
  foreach(header IN LISTS arg_PUBLIC)
    if(NOT header IN_LIST headers)
      message(SEND_ERROR "${name}: ${header} is PUBLIC, but not among its files")
    endif()
  endforeach()
endmacro()

# Each of these headers compiles alone.
function(fedep_check_headers target scope)
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${ARGN})
  set_target_properties(${target} PROPERTIES VERIFY_INTERFACE_HEADER_SETS ON)
  add_dependencies(header_check ${target}_verify_interface_header_sets)
endfunction()

# arg_FILES, arg_TORCH, arg_CUDA -> headers, sources, tests, fuzzers; torch_sources and torch_tests where there is torch
macro(fedep_sort_files)
  set(torch_files "")
  if(FEDEP_WITH_TORCH)
    set(torch_files ${arg_TORCH})
  endif()
  set(files ${arg_FILES})
  if(FEDEP_WITH_CUDA)
    list(APPEND files ${arg_CUDA})
  endif()
  set(headers ${files} ${torch_files})
  list(FILTER headers INCLUDE REGEX "\\.h$")
  list(FILTER headers EXCLUDE REGEX "(^|/)test_")  # for tests alone
  fedep_sort_sources(sources tests ${files})
  fedep_sort_sources(torch_sources torch_tests ${torch_files})
  set(fuzzers ${files})
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
endmacro()

macro(fedep_sort_sources sources_name tests_name)
  set(${sources_name} ${ARGN})
  list(FILTER ${sources_name} EXCLUDE REGEX "\\.h$")
  set(${tests_name} ${${sources_name}})
  list(FILTER ${tests_name} INCLUDE REGEX "_test\\.c[pu]p?$")
  list(FILTER ${sources_name} EXCLUDE REGEX "_(test|fuzz)\\.c[pu]p?$")
endmacro()

# Sources that read torch's headers, compiled apart with their precompiled header, so that all others are compiled by the same
# commands as without torch: ccache then has them already.
function(fedep_add_torch_sources target)
  add_library(${target}_torch OBJECT ${ARGN})
  target_include_directories(${target}_torch PRIVATE $<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>)
  target_link_libraries(${target}_torch PRIVATE ${TORCH_LIBRARIES} $<GENEX_EVAL:$<TARGET_PROPERTY:${target},LINK_LIBRARIES>>)
  target_compile_definitions(${target}_torch PRIVATE FMT_HEADER_ONLY)  # torch may bring headers of another fmt
  target_precompile_headers(${target}_torch REUSE_FROM fedep_torch_header)
  target_sources(${target} PRIVATE $<TARGET_OBJECTS:${target}_torch>)
  get_target_property(type ${target} TYPE)
  # Torch's wheels export a std::filesystem of their own, which fails: the compiler's must be found before it.
  set(scope INTERFACE)
  if(type STREQUAL EXECUTABLE)
    set(scope PRIVATE)
  endif()
  target_link_options(${target} ${scope} -Wl,--push-state,--no-as-needed,-lstdc++,--pop-state)
  foreach(library IN LISTS TORCH_LIBRARIES)
    if(type STREQUAL EXECUTABLE)
      target_link_libraries(${target} PRIVATE $<LINK_ONLY:${library}>)
    else()
      target_link_libraries(${target} INTERFACE $<LINK_ONLY:${library}>)
    endif()
  endforeach()
endfunction()
