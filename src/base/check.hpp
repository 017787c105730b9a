// SPDX-License-Identifier: Apache-2.0
// Checks for bugs, never for input: a failed check prints where and why, and aborts.
#pragma once

#include <string_view>

namespace spud::internal {
[[noreturn]] void check_failed(std::string_view expression, const char* file, int line) noexcept;
}  // namespace spud::internal

#define SPUD_CHECK(condition)         \
  ((condition) ? static_cast<void>(0) \
               : ::spud::internal::check_failed(#condition, __FILE__, __LINE__))

#ifdef NDEBUG
#define SPUD_DCHECK(condition) static_cast<void>(sizeof(condition))
#else
#define SPUD_DCHECK(condition) SPUD_CHECK(condition)
#endif
