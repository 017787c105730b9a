// SPDX-License-Identifier: Apache-2.0
// What a template may use: steps, and bytes of strings it makes (64 bytes cost one step, so that
// doubling a string in a loop ends soon). Depth of evaluation is bounded by the interpreter.
#pragma once

#include <cstddef>

#include "base/result.hpp"

namespace spud::tokenizer::jinja {

class Budget {
 public:
  Budget(std::size_t max_steps, std::size_t max_bytes)
      : max_steps_(max_steps), max_bytes_(max_bytes), steps_left_(max_steps) {}

  [[nodiscard]] Result<void> step(std::size_t count = 1) {
    if (count > steps_left_) {
      return fail(ErrorCode::kResourceExhausted,
                  "the chat template needs more than the limit of {} steps", max_steps_);
    }
    steps_left_ -= count;
    return {};
  }
  // Before a string of this size is made.
  [[nodiscard]] Result<void> bytes(std::size_t count) {
    if (count > max_bytes_) {
      return fail(ErrorCode::kResourceExhausted,
                  "the chat template makes a text longer than the limit of {} bytes", max_bytes_);
    }
    return step(1 + count / 64);
  }
  // Before `part` bytes are looked for in `text` bytes, which may take their product.
  [[nodiscard]] Result<void> search(std::size_t text, std::size_t part) {
    return step(1 + (text / 64) * (1 + part / 16));
  }
  // Before values of this weight are walked through.
  [[nodiscard]] Result<void> walk(std::size_t weight) { return step(weight / 8); }
  std::size_t max_bytes() const noexcept { return max_bytes_; }

 private:
  std::size_t max_steps_;
  std::size_t max_bytes_;
  std::size_t steps_left_;
};

}  // namespace spud::tokenizer::jinja
