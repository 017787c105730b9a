// SPDX-License-Identifier: Apache-2.0
// Arithmetic on numbers that a file or a client chose: it cannot wrap, it returns nothing instead.
#pragma once

#include <concepts>
#include <limits>
#include <optional>
#include <utility>

namespace spud {

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_add(T a, T b) noexcept {
  T result;
  if (__builtin_add_overflow(a, b, &result)) return std::nullopt;
  return result;
}

template <std::integral T>
[[nodiscard]] constexpr std::optional<T> checked_mul(T a, T b) noexcept {
  T result;
  if (__builtin_mul_overflow(a, b, &result)) return std::nullopt;
  return result;
}

// Rounds up to a multiple of `step` (step > 0); nothing when that would wrap.
template <std::unsigned_integral T>
[[nodiscard]] constexpr std::optional<T> checked_round_up(T value, T step) noexcept {
  const T rest = value % step;
  return rest == 0 ? std::optional<T>(value) : checked_add<T>(value, step - rest);
}

// The value as another integer type; nothing when it does not fit.
template <std::integral To, std::integral From>
[[nodiscard]] constexpr std::optional<To> checked_cast(From value) noexcept {
  if (!std::in_range<To>(value)) return std::nullopt;
  return static_cast<To>(value);
}

}  // namespace spud
