// SPDX-License-Identifier: Apache-2.0
// Finds stop strings in a text that arrives in pieces. Text that could still become a stop string
// is held back, so that no part of one is ever shown; the outcome does not depend on how the text
// was cut. Holds at most the longest stop string.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace spud::engine {

// Thread-compatible.
class StopMatcher {
 public:
  // Empty strings are ignored.
  explicit StopMatcher(std::vector<std::string> stops);

  // The text that is now certain. After a match: what came before the stop string; nothing more
  // may be pushed.
  std::string push(std::string_view text);
  // The stop string that ends first in the text (of two that end together, the longer).
  const std::optional<std::string>& matched() const noexcept { return matched_; }
  // What was held back, at the end of the text.
  std::string finish();

 private:
  std::vector<std::string> stops_;
  std::string held_;
  std::optional<std::string> matched_;
};

}  // namespace spud::engine
