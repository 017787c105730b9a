// SPDX-License-Identifier: Apache-2.0
// Arithmetic and comparison, with Python's meaning; integers are 64 bits and do not wrap.
#pragma once

#include "tokenizer/jinja/ast.hpp"

namespace spud::tokenizer::jinja {

[[nodiscard]] Result<Value> binary(Budget& budget, Op op, const Value& left, const Value& right);
[[nodiscard]] Result<bool> compare(Op op, const Value& left, const Value& right);
[[nodiscard]] Result<Value> negate(const Value& operand);

}  // namespace spud::tokenizer::jinja
