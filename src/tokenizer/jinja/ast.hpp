// SPDX-License-Identifier: Apache-2.0
// A parsed template: expressions and statements as trees of two node types. What the children of a
// node mean depends on its kind and stands beside the kind.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tokenizer/jinja/builtins.hpp"
#include "tokenizer/jinja/value.hpp"

namespace spud::tokenizer::jinja {

enum class ExprKind : std::uint8_t {
  kLiteral,      // literal
  kName,         // name
  kList,         // children: items
  kTuple,        // children: items
  kDict,         // children: key, value, key, value, ...
  kAttribute,    // children: object; name
  kSubscript,    // children: object, index
  kSlice,        // children: object, start, stop, step (null where absent)
  kCall,         // children: what is called, arguments...; named
  kFilter,       // children: input (null inside set/filter blocks), arguments...; named; filter
  kTest,         // children: input, arguments...; test
  kUnary,        // children: operand; op "-" or "+"
  kBinary,       // children: left, right; op
  kCompare,      // children: first, second, ...; ops between them
  kAnd,          // children: left, right
  kOr,           // children: left, right
  kNot,          // children: operand
  kConditional,  // children: then, condition, else (null where absent)
};

enum class Op : std::uint8_t {
  kAdd,
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMod,
  kPow,
  kConcat,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kIn,
  kNotIn,
};

struct Expr {
  ExprKind kind = ExprKind::kLiteral;
  int line = 0;
  int depth = 1;  // of the tree below; bounded by the parser
  std::string name;
  Value literal;
  Op op = Op::kAdd;
  std::vector<Op> ops;
  std::vector<std::unique_ptr<Expr>> children;
  std::vector<std::pair<std::string, std::unique_ptr<Expr>>> named;
  const Filter* filter = nullptr;
  const Test* test = nullptr;
};
using ExprPtr = std::unique_ptr<Expr>;

enum class StmtKind : std::uint8_t {
  kText,      // text
  kPrint,     // exprs: value
  kIf,        // exprs: conditions; blocks: one per condition, and one more for else
  kFor,       // names: targets; exprs: iterable, filter or null; blocks: body, else or empty
  kSet,       // names: targets (or namespace and member, when is_member); exprs: value
  kSetBlock,  // names: target; exprs: filters in order; blocks: body
  kMacro,     // text: name; names: parameters; exprs: defaults or null; blocks: body
  kFilter,    // exprs: filters in order; blocks: body
  kWith,      // names, exprs: variables; blocks: body
  kBreak,
  kContinue,
};

struct Stmt;
using Block = std::vector<std::unique_ptr<Stmt>>;

struct Stmt {
  StmtKind kind = StmtKind::kText;
  int line = 0;
  std::string text;
  std::vector<std::string> names;
  std::vector<ExprPtr> exprs;
  std::vector<Block> blocks;
  bool is_member = false;
};

}  // namespace spud::tokenizer::jinja
