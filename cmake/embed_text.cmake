# SPDX-License-Identifier: Apache-2.0
# spud_embed_text(target header variable file): makes <build>/generated/<header> with
#   inline constexpr std::string_view <variable>
# holding the file's text, visible to the target. For text up to some hundred kilobytes: it becomes
# a raw string literal. The header is made again when the file changes.
function(spud_embed_text target header variable file)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${file}" SPUD_EMBED_TEXT)
  if(SPUD_EMBED_TEXT MATCHES "\\)spud_text\"")
    message(FATAL_ERROR "${file} holds the end mark of the literal it is embedded in")
  endif()
  set(SPUD_EMBED_VARIABLE ${variable})
  configure_file("${CMAKE_SOURCE_DIR}/cmake/embed_text.hpp.in"
                 "${CMAKE_BINARY_DIR}/generated/${header}" @ONLY)
  target_include_directories(${target} PRIVATE "${CMAKE_BINARY_DIR}/generated")
endfunction()
