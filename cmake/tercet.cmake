# One library per folder of src/, its tests beside it.
#
#   tercet_library(NAME DEPENDS folder... LINK package-target...)
#
# builds every *.cc of src/NAME into the library tercet_NAME, the *_test.cc files into tercet_NAME_test (label "unit"),
# the *_slow_test.cc files into tercet_NAME_slow_test (label "slow"), and each *_fuzz.cc into a libFuzzer target when
# TERCET_FUZZ is on. Presets that build everything compile several files of a library or test at once, so names in the
# anonymous namespaces of a folder differ; the debug preset never does, so that a missing include shows. A file below a
# folder isa/X/ is compiled for instruction set X by the folder's own CMakeLists.txt.

set(TERCET_TEST_DATA ${PROJECT_SOURCE_DIR}/tests/data)

# Compiles the headers that most files include once: for the libraries, and again for the tests with their options. Files
# include what they use all the same.
function(tercet_precompiled_headers name)
  cmake_parse_arguments(ARG "" "" "HEADERS;LINK;OPTIONS" ${ARGN})
  file(CONFIGURE OUTPUT ${name}.cc CONTENT "")
  add_library(${name} OBJECT ${CMAKE_CURRENT_BINARY_DIR}/${name}.cc)
  target_link_libraries(${name} PRIVATE ${ARG_LINK})
  target_compile_options(${name} PRIVATE ${ARG_OPTIONS})
  target_precompile_headers(${name} PRIVATE ${ARG_HEADERS})
endfunction()

# Few: GCC spends time on each header in here for every file, used or not.
tercet_precompiled_headers(tercet_headers HEADERS <fmt/format.h> <algorithm> <functional> <memory> <span> <string> <vector>
                           LINK fmt::fmt)
# Tests are compiled more often than run: lightly optimized.
tercet_precompiled_headers(tercet_test_headers HEADERS <gmock/gmock.h> <map> <random> <string> <vector>
                           LINK GTest::gmock OPTIONS ${TERCET_O1_OPTIONS})

function(tercet_test target label)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_executable(${target} ${ARG_SOURCES})
  target_link_libraries(${target} PRIVATE ${ARG_LINK} GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE TERCET_TEST_DATA="${TERCET_TEST_DATA}")
  target_precompile_headers(${target} REUSE_FROM tercet_test_headers)
  target_compile_options(${target} PRIVATE ${TERCET_O1_OPTIONS})
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST PROPERTIES LABELS ${label} TIMEOUT 1200)
endfunction()

function(tercet_library name)
  cmake_parse_arguments(ARG "" "" "DEPENDS;LINK" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  list(FILTER sources EXCLUDE REGEX "/isa/|/emulated/")
  set(tests ${sources})
  set(slow_tests ${sources})
  set(fuzzers ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz)\\.cc$")
  list(FILTER slow_tests INCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER tests EXCLUDE REGEX "_slow_test\\.cc$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cc$")

  list(TRANSFORM ARG_DEPENDS PREPEND tercet_ OUTPUT_VARIABLE depends)
  if(sources)
    add_library(tercet_${name} STATIC ${sources})
    target_precompile_headers(tercet_${name} REUSE_FROM tercet_headers)
    set(scope PUBLIC)
  else()
    add_library(tercet_${name} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_include_directories(tercet_${name} ${scope} ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(tercet_${name} ${scope} ${depends} ${ARG_LINK})
  if(tests)
    tercet_test(tercet_${name}_test unit SOURCES ${tests} LINK tercet_${name})
  endif()
  if(slow_tests)
    tercet_test(tercet_${name}_slow_test slow SOURCES ${slow_tests} LINK tercet_${name})
  endif()
  if(TERCET_FUZZ)
    foreach(fuzzer ${fuzzers})
      get_filename_component(target ${fuzzer} NAME_WE)
      add_executable(${target} ${fuzzer})
      target_link_libraries(${target} PRIVATE tercet_${name})
      target_compile_options(${target} PRIVATE -fsanitize=fuzzer)
      target_link_options(${target} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()
