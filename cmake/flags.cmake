# SPDX-License-Identifier: Apache-2.0
# One INTERFACE target carries every flag; nothing is set globally, so a module cannot drift.
add_library(spud_flags INTERFACE)
target_compile_options(spud_flags INTERFACE
    -Wall -Wextra -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wno-missing-field-initializers
    -Werror -fno-math-errno -ffp-contract=off)
# -ffp-contract=off: the compiler may not fuse a*b+c on its own, so that the scalar reference is
# the same arithmetic on every build. Kernels ask for FMA explicitly where they want it.

set(SPUD_SANITIZE "" CACHE STRING "Sanitizers, e.g. 'address,undefined' or 'thread'")

# GCC 12 at -O3 and under sanitizers reports overflows inside std::string that can not happen
# (PR105329, PR105651).
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  if(SPUD_SANITIZE)
    set(false_alarms 1)
  else()
    set(false_alarms "$<CONFIG:Release>")
  endif()
  target_compile_options(spud_flags INTERFACE "$<${false_alarms}:-Wno-array-bounds;-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-restrict>")
endif()

if(SPUD_SANITIZE)
  target_compile_options(spud_flags INTERFACE -fsanitize=${SPUD_SANITIZE} -fno-omit-frame-pointer
                         -fno-sanitize-recover=all)
  target_link_options(spud_flags INTERFACE -fsanitize=${SPUD_SANITIZE})
endif()

# clang reports what libstdc++ 12 does inside std::stable_sort.
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(spud_flags INTERFACE -Wno-deprecated-declarations)
endif()

if(SPUD_FUZZ)  # coverage for libFuzzer; the targets themselves link it (tests/fuzz)
  target_compile_options(spud_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(SPUD_CCACHE ccache)
if(SPUD_CCACHE)
  # The precompiled header needs the sloppiness; the base directory lets two checkouts share hits.
  foreach(lang C CXX)
    set(CMAKE_${lang}_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
        CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
        CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${SPUD_CCACHE})
  endforeach()
endif()

# One precompiled header for all modules: the standard headers nearly every file includes.
set(SPUD_PCH_HEADERS <algorithm> <array> <atomic> <chrono> <cstdint> <cstring> <expected>
    <functional> <map> <memory> <mutex> <optional> <span> <string> <string_view> <thread>
    <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
file(WRITE "${CMAKE_BINARY_DIR}/spud_pch.cpp.in" "// Carries the precompiled header.\n")
configure_file("${CMAKE_BINARY_DIR}/spud_pch.cpp.in" "${CMAKE_BINARY_DIR}/spud_pch.cpp" COPYONLY)
add_library(spud_pch STATIC "${CMAKE_BINARY_DIR}/spud_pch.cpp")
target_link_libraries(spud_pch PRIVATE spud_flags PUBLIC fmt::fmt Threads::Threads)
target_precompile_headers(spud_pch PRIVATE ${SPUD_PCH_HEADERS})
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(spud_flags INTERFACE -fpch-preprocess -Winvalid-pch)
endif()
