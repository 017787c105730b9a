// SPDX-License-Identifier: Apache-2.0
#include "base/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace spud::internal {

void check_failed(std::string_view expression, const char* file, int line) noexcept {
  std::fprintf(stderr, "%s:%d: check failed: %.*s\nThis is a bug in spud; please report it.\n",
               file, line, static_cast<int>(expression.size()), expression.data());
  std::abort();
}

}  // namespace spud::internal
