// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value or an Error. SPUD_TRY hands the error to the caller:
//
//   SPUD_TRY(const auto header, read_header(reader));   // binds the value
//   SPUD_TRY(check_alignment(header));                  // for Result<void>
//
// Every function that returns a Result is [[nodiscard]].
#pragma once

#include <fmt/format.h>

#include <expected>
#include <utility>

#include "base/error.hpp"

namespace spud {

template <typename T>
using Result = std::expected<T, Error>;

// fail(ErrorCode::kNotFound, "no tensor named '{}'", name) -> std::unexpected<Error>
template <typename... Args>
[[nodiscard]] std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format,
                                          Args&&... args) {
  return std::unexpected<Error>(std::in_place, code,
                                fmt::format(format, std::forward<Args>(args)...));
}

// fail_within("load model", std::move(result).error())
[[nodiscard]] inline std::unexpected<Error> fail_within(std::string_view place, Error error) {
  return std::unexpected<Error>(std::move(error).within(place));
}

}  // namespace spud

#define SPUD_INTERNAL_CAT2(a, b) a##b
#define SPUD_INTERNAL_CAT(a, b) SPUD_INTERNAL_CAT2(a, b)
#define SPUD_INTERNAL_TRY(name, expression)                             \
  do {                                                                  \
    if (auto name = (expression); !name)                                \
      return ::std::unexpected<::spud::Error>(std::move(name).error()); \
  } while (false)
#define SPUD_INTERNAL_TRY_ASSIGN(name, declaration, ...)                       \
  auto name = (__VA_ARGS__);                                                   \
  if (!name) return ::std::unexpected<::spud::Error>(std::move(name).error()); \
  declaration = *std::move(name)
#define SPUD_INTERNAL_CO_TRY(name, expression)                             \
  do {                                                                     \
    if (auto name = (expression); !name)                                   \
      co_return ::std::unexpected<::spud::Error>(std::move(name).error()); \
  } while (false)
#define SPUD_INTERNAL_CO_TRY_ASSIGN(name, declaration, ...)                       \
  auto name = (__VA_ARGS__);                                                      \
  if (!name) co_return ::std::unexpected<::spud::Error>(std::move(name).error()); \
  declaration = *std::move(name)

#define SPUD_TRY(first, ...)                                \
  SPUD_INTERNAL_CAT(SPUD_INTERNAL_TRY, __VA_OPT__(_ASSIGN)) \
  (SPUD_INTERNAL_CAT(spud_try_, __COUNTER__), first __VA_OPT__(, ) __VA_ARGS__)
#define SPUD_CO_TRY(first, ...)                                \
  SPUD_INTERNAL_CAT(SPUD_INTERNAL_CO_TRY, __VA_OPT__(_ASSIGN)) \
  (SPUD_INTERNAL_CAT(spud_try_, __COUNTER__), first __VA_OPT__(, ) __VA_ARGS__)
