// SPDX-License-Identifier: Apache-2.0
// The bytes of data/text.jsonl and data/choices.jsonl, inside the program.
#pragma once

#include <string_view>

namespace spud::quality::internal {

std::string_view embedded_text() noexcept;
std::string_view embedded_choices() noexcept;

}  // namespace spud::quality::internal
