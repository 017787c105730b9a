// SPDX-License-Identifier: Apache-2.0
// Expressions.
#include <algorithm>

#include "tokenizer/jinja/function.hpp"
#include "tokenizer/jinja/interpreter.hpp"
#include "tokenizer/jinja/operators.hpp"

namespace spud::tokenizer::jinja {
namespace {

std::string describe_callee(const Expr& callee) {
  return callee.name.empty() ? "the value" : fmt::format("'{}'", callee.name);
}

}  // namespace

Result<Value> Interpreter::evaluate(const Expr& node) {
  SPUD_TRY(budget_.step());
  // Each macro call starts a new tree of expressions, so their depth adds up; the stack is finite.
  if (++depth_ > limits_.max_depth * 8) {
    return fail(ErrorCode::kResourceExhausted,
                "chat template line {}: expressions and macros nest deeper than the limit of {}",
                node.line, limits_.max_depth * 8);
  }
  auto value = evaluate_kind(node);
  --depth_;
  return value;
}

Result<Value> Interpreter::evaluate_kind(const Expr& node) {
  const auto child = [&](std::size_t i) { return evaluate(*node.children[i]); };
  switch (node.kind) {
    case ExprKind::kLiteral:
      return node.literal;
    case ExprKind::kName:
      return evaluate_name(node);
    case ExprKind::kList:
    case ExprKind::kTuple:
      return evaluate_items(node);
    case ExprKind::kDict:
      return evaluate_dict(node);
    case ExprKind::kAttribute: {
      SPUD_TRY(const Value object, child(0));
      return at_line(node.line, attribute(object, node.name));
    }
    case ExprKind::kSubscript: {
      SPUD_TRY(const Value object, child(0));
      SPUD_TRY(const Value index, child(1));
      return at_line(node.line, subscript(object, index));
    }
    case ExprKind::kSlice:
      return evaluate_slice(node);
    case ExprKind::kCall:
      return evaluate_call(node);
    case ExprKind::kFilter: {
      SPUD_TRY(const Value input, child(0));
      return evaluate_filter(node, input);
    }
    case ExprKind::kTest:
      return evaluate_test(node);
    case ExprKind::kUnary: {
      SPUD_TRY(Value operand, child(0));
      if (node.op == Op::kAdd && operand.is_number()) return operand;
      return at_line(node.line, negate(operand));
    }
    case ExprKind::kBinary: {
      SPUD_TRY(const Value left, child(0));
      SPUD_TRY(const Value right, child(1));
      return at_line(node.line, binary(budget_, node.op, left, right));
    }
    case ExprKind::kCompare:
      return evaluate_compare(node);
    case ExprKind::kAnd:
    case ExprKind::kOr: {
      SPUD_TRY(Value left, child(0));
      if (left.truth() == (node.kind == ExprKind::kOr)) return left;
      return child(1);
    }
    case ExprKind::kNot: {
      SPUD_TRY(const Value operand, child(0));
      return Value::boolean(!operand.truth());
    }
    case ExprKind::kConditional: {
      SPUD_TRY(const Value condition, child(1));
      if (condition.truth()) return child(0);
      if (node.children[2] != nullptr) return child(2);
      return Value::undefined("the inline if without else");
    }
  }
  return Value();
}

Result<Value> Interpreter::evaluate_name(const Expr& node) {
  if (const Value* variable = find_variable(node.name)) return *variable;
  if (const GlobalFunction* global = find_global(node.name)) {
    return Value(Value::Variant(std::make_shared<const Function>(Function{.global = global})));
  }
  return Value::undefined(fmt::format("'{}'", node.name));
}

Result<Value> Interpreter::evaluate_items(const Expr& node) {
  std::vector<Value> items;
  for (const ExprPtr& child : node.children) {
    SPUD_TRY(Value item, evaluate(*child));
    items.push_back(std::move(item));
  }
  return at_line(node.line, make_list(std::move(items), node.kind == ExprKind::kTuple));
}

Result<Value> Interpreter::evaluate_dict(const Expr& node) {
  std::vector<Dict::Entry> entries;
  for (std::size_t i = 0; i + 1 < node.children.size(); i += 2) {
    SPUD_TRY(const Value key, evaluate(*node.children[i]));
    const TextPtr* text = key.get<TextPtr>();
    if (text == nullptr) {
      return fail(ErrorCode::kUnimplemented,
                  "chat template line {}: a dict key that is not a string is not supported",
                  node.line);
    }
    SPUD_TRY(Value value, evaluate(*node.children[i + 1]));
    put(entries, *text, std::move(value));
  }
  return at_line(node.line, make_dict(std::move(entries)));
}

Result<Value> Interpreter::evaluate_slice(const Expr& node) {
  SPUD_TRY(const Value object, evaluate(*node.children[0]));
  Value parts[3];
  for (std::size_t i = 0; i < 3; ++i) {
    if (node.children[i + 1] == nullptr) continue;
    SPUD_TRY(parts[i], evaluate(*node.children[i + 1]));
  }
  return at_line(node.line, slice(budget_, object, parts[0], parts[1], parts[2]));
}

Result<Value> Interpreter::evaluate_compare(const Expr& node) {
  SPUD_TRY(Value left, evaluate(*node.children[0]));
  for (std::size_t i = 0; i < node.ops.size(); ++i) {
    SPUD_TRY(Value right, evaluate(*node.children[i + 1]));
    SPUD_TRY(budget_.walk(left.weight() + right.weight()));
    if (const Text* part = left.as_text(); part != nullptr && right.as_text() != nullptr) {
      SPUD_TRY(budget_.search(right.as_text()->bytes.size(), part->bytes.size()));
    }
    SPUD_TRY(const bool holds, at_line(node.line, compare(node.ops[i], left, right)));
    if (!holds) return Value::boolean(false);
    left = std::move(right);
  }
  return Value::boolean(true);
}

Result<Arguments> Interpreter::evaluate_arguments(const Expr& node) {
  Arguments arguments;
  for (std::size_t i = 1; i < node.children.size(); ++i) {
    SPUD_TRY(Value value, evaluate(*node.children[i]));
    arguments.positional.push_back(std::move(value));
  }
  for (const auto& [name, child] : node.named) {
    SPUD_TRY(Value value, evaluate(*child));
    arguments.named.emplace_back(name, std::move(value));
  }
  return arguments;
}

Result<Value> Interpreter::evaluate_filter(const Expr& node, const Value& input) {
  SPUD_TRY(const Arguments arguments, evaluate_arguments(node));
  return at_line(node.line, node.filter->apply(environment_, input, arguments));
}

Result<Value> Interpreter::evaluate_test(const Expr& node) {
  SPUD_TRY(const Value input, evaluate(*node.children[0]));
  SPUD_TRY(const Arguments arguments, evaluate_arguments(node));
  SPUD_TRY(budget_.walk(test_weight(input, arguments)));
  SPUD_TRY(const bool holds, at_line(node.line, node.test->apply(input, arguments)));
  return Value::boolean(holds);
}

Result<Value> Interpreter::evaluate_call(const Expr& node) {
  const Expr& callee = *node.children[0];
  SPUD_TRY(const Arguments arguments, evaluate_arguments(node));
  if (callee.kind == ExprKind::kAttribute) {
    SPUD_TRY(std::optional<Value> changed, mutate(callee, arguments));
    if (changed) return *std::move(changed);
    SPUD_TRY(const Value object, evaluate(*callee.children[0]));
    return evaluate_method(node, object, arguments);
  }
  SPUD_TRY(const Value function, evaluate(callee));
  const auto* known = function.get<std::shared_ptr<const Function>>();
  if (known == nullptr) {
    return fail(ErrorCode::kInvalidArgument, "chat template line {}: {} is {}, not a function",
                node.line, describe_callee(callee), function.type_name());
  }
  if ((*known)->macro != nullptr) return call_macro(*(*known)->macro, arguments);
  return at_line(node.line, (*known)->global->call(environment_, arguments));
}

Result<Value> Interpreter::evaluate_method(const Expr& node, const Value& object,
                                           const Arguments& arguments) {
  const std::string& name = node.children[0]->name;
  SPUD_TRY(std::optional<Value> value,
           at_line(node.line, call_method(environment_, object, name, arguments)));
  if (value) return *std::move(value);
  // A function kept in a dictionary or namespace.
  SPUD_TRY(const Value member, at_line(node.line, attribute(object, name)));
  if (const auto* known = member.get<std::shared_ptr<const Function>>()) {
    if ((*known)->macro != nullptr) return call_macro(*(*known)->macro, arguments);
    return at_line(node.line, (*known)->global->call(environment_, arguments));
  }
  return fail(ErrorCode::kUnimplemented,
              "chat template line {}: the method '{}' of {} is not supported", node.line, name,
              object.type_name());
}

Result<Value> Interpreter::call_macro(const Stmt& macro, const Arguments& arguments) {
  if (++macro_depth_ > limits_.max_depth) {
    return fail(ErrorCode::kResourceExhausted,
                "chat template line {}: macros call each other deeper than the limit of {}",
                macro.line, limits_.max_depth);
  }
  std::vector<std::string_view> names(macro.names.begin(), macro.names.end());
  SPUD_TRY(std::vector<Value> values, at_line(macro.line, bind_arguments(arguments, names)));
  frames_.emplace_back().is_macro = true;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (values[i].is_undefined() && macro.exprs[i] != nullptr) {
      SPUD_TRY(values[i], evaluate(*macro.exprs[i]));
    }
    set_variable(names[i], std::move(values[i]));
  }
  auto text = capture(macro.blocks[0]);
  frames_.pop_back();
  --macro_depth_;
  return text;
}

}  // namespace spud::tokenizer::jinja
