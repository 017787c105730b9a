// SPDX-License-Identifier: Apache-2.0
// The two halves of the filter table.
#pragma once

#include <span>

#include "tokenizer/jinja/builtins.hpp"

namespace spud::tokenizer::jinja {

std::span<const Filter> list_filters();

}  // namespace spud::tokenizer::jinja
