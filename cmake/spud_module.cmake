# SPDX-License-Identifier: Apache-2.0
# spud_module(name
#   DEPS base tensor          # other modules: become link dependencies, checked by check_layers.py
#   LIBS Boost::json          # outside libraries
#   HEADERS a.hpp  SOURCES a.cpp
#   TEST_DEPS x  TEST_LIBS y) # only for the tests
# Makes the library spud_<name>, the test program <name>_test from every *_test.cpp beside it and,
# with SPUD_BENCHES, <name>_bench from every *_bench.cpp. A module in a sub-folder is named with a
# slash replaced: src/formats/gguf -> spud_module(formats_gguf ...).
include(GoogleTest)

function(spud_module name)
  cmake_parse_arguments(PARSE_ARGV 1 M "" "" "DEPS;LIBS;HEADERS;SOURCES;TEST_DEPS;TEST_LIBS")
  set(target spud_${name})
  list(TRANSFORM M_DEPS PREPEND spud_)
  list(TRANSFORM M_TEST_DEPS PREPEND spud_)
  if(M_SOURCES)
    add_library(${target} STATIC ${M_SOURCES})
    set(scope PUBLIC)
    target_link_libraries(${target} PRIVATE spud_flags)
    target_precompile_headers(${target} REUSE_FROM spud_pch)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} ${M_DEPS} ${M_LIBS} fmt::fmt Threads::Threads)
  target_include_directories(${target} ${scope} "${CMAKE_SOURCE_DIR}/src")
  target_sources(${target} ${scope} FILE_SET HEADERS BASE_DIRS "${CMAKE_SOURCE_DIR}/src"
                 FILES ${M_HEADERS})
  # Headers that no other module includes are in no list, but must compile alone, too.
  file(GLOB_RECURSE internal CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}" *.hpp)
  list(FILTER internal EXCLUDE REGEX "\\.inl\\.hpp$")
  list(REMOVE_ITEM internal ${M_HEADERS})
  if(internal)
    target_sources(${target} ${scope} FILE_SET internal_headers TYPE HEADERS
                   BASE_DIRS "${CMAKE_SOURCE_DIR}/src" FILES ${internal})
  endif()

  if(SPUD_TESTS)
    file(GLOB tests CONFIGURE_DEPENDS *_test.cpp)
    if(tests)
      add_executable(${name}_test ${tests})
      target_link_libraries(${name}_test PRIVATE ${target} ${M_TEST_DEPS} ${M_TEST_LIBS} spud_flags
                            GTest::gmock GTest::gtest_main)
      target_precompile_headers(${name}_test REUSE_FROM spud_pch)
      # PRE_TEST: the program is asked for its cases when ctest runs, not while building.
      gtest_discover_tests(${name}_test DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 60
                           PROPERTIES LABELS fast TIMEOUT 300)
    endif()
  endif()
  if(SPUD_BENCHES)
    file(GLOB benches CONFIGURE_DEPENDS *_bench.cpp)
    if(benches)
      add_executable(${name}_bench ${benches})
      target_link_libraries(${name}_bench PRIVATE ${target} ${M_TEST_DEPS} spud_flags
                            benchmark::benchmark_main)
    endif()
  endif()
endfunction()
