// SPDX-License-Identifier: Apache-2.0
// What a name can hold that is called: a macro of the template or one of our functions.
#pragma once

#include "tokenizer/jinja/ast.hpp"

namespace spud::tokenizer::jinja {

struct Function {
  const Stmt* macro = nullptr;
  const GlobalFunction* global = nullptr;
};

}  // namespace spud::tokenizer::jinja
