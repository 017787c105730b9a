// SPDX-License-Identifier: Apache-2.0
// Guesses the next tokens of a text from the text itself (prompt lookup): what followed the last
// three tokens when they stood there before. Worth it where answers repeat their input: code,
// quotes, tables. The engine computes the guesses as further rows of a step and keeps those that it
// would have sampled anyway, so the output never changes. It watches how many are kept, proposes
// fewer when few are, and pauses when they do not pay.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "tokenizer/tokenizer.hpp"

namespace spud::engine {

// One per sequence; thread-compatible.
class NgramDraft {
 public:
  static constexpr std::int64_t kLongest = 6;  // tokens of one proposal

  // At most `most` tokens that may follow `tokens`, which only ever grow between calls.
  std::vector<tokenizer::TokenId> propose(std::span<const tokenizer::TokenId> tokens,
                                          std::int64_t most);
  // How many of the latest proposal were right.
  void report(std::int64_t num_proposed, std::int64_t num_kept);

 private:
  std::unordered_map<std::uint64_t, std::uint32_t> follows_;  // three tokens -> what comes after
  std::size_t num_indexed_ = 0;                               // tokens whose three are in it
  double kept_share_ = 0.5;
  std::size_t paused_until_ = 0;  // tokens
};

}  // namespace spud::engine
