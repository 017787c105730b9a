// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/jinja/operators.hpp"

#include <cmath>

#include "base/checked_math.hpp"
#include "tokenizer/jinja/print.hpp"
#include "tokenizer/jinja/strings.hpp"

namespace spud::tokenizer::jinja {
namespace {

std::string_view symbol(Op op) {
  static constexpr std::string_view kSymbols[] = {
      "+", "-", "*", "/", "//", "%", "**", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in"};
  return kSymbols[static_cast<std::size_t>(op)];
}

std::unexpected<Error> not_defined(Op op, const Value& left, const Value& right) {
  for (const Value* side : {&left, &right}) {
    const auto* undefined = side->get<Undefined>();
    if (undefined != nullptr && undefined->what) {
      return fail(ErrorCode::kInvalidArgument, "{} is undefined", *undefined->what);
    }
  }
  return fail(ErrorCode::kInvalidArgument, "'{}' is not defined between {} and {}", symbol(op),
              left.type_name(), right.type_name());
}

Result<Value> integer_result(Op op, std::optional<std::int64_t> value) {
  if (value) return Value::integer(*value);
  return fail(ErrorCode::kInvalidArgument, "the result of '{}' does not fit in 64 bits",
              symbol(op));
}

std::unexpected<Error> division_by_zero() {
  return fail(ErrorCode::kInvalidArgument, "division by zero");
}

Result<Value> integer_power(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) {
    if (base == 0) return division_by_zero();
    return Value::number(std::pow(static_cast<double>(base), static_cast<double>(exponent)));
  }
  std::optional<std::int64_t> result = 1;
  // 0, 1 and -1 stay small whatever the exponent; anything else overflows within 63 steps.
  if (base == 0 || base == 1) return Value::integer(exponent == 0 ? 1 : base);
  if (base == -1) return Value::integer(exponent % 2 == 0 ? 1 : -1);
  for (std::int64_t i = 0; i < exponent && result; ++i) result = checked_mul(*result, base);
  return integer_result(Op::kPow, result);
}

Result<Value> integers(Op op, std::int64_t a, std::int64_t b) {
  switch (op) {
    case Op::kAdd:
      return integer_result(op, checked_add(a, b));
    case Op::kMul:
      return integer_result(op, checked_mul(a, b));
    case Op::kSub: {
      std::int64_t result = 0;
      const bool wraps = __builtin_sub_overflow(a, b, &result);
      return integer_result(op, wraps ? std::nullopt : std::optional(result));
    }
    case Op::kPow:
      return integer_power(a, b);
    default:
      break;
  }
  if (b == 0) return division_by_zero();
  if (op == Op::kDiv) return Value::number(static_cast<double>(a) / static_cast<double>(b));
  if (b == -1) {  // INT64_MIN / -1 traps
    return op == Op::kMod ? Value::integer(0) : integers(Op::kSub, 0, a);
  }
  // Python rounds towards minus infinity, C++ towards zero.
  const bool adjust = a % b != 0 && (a < 0) != (b < 0);
  if (op == Op::kMod) return Value::integer(a % b + (adjust ? b : 0));
  return Value::integer(a / b - (adjust ? 1 : 0));
}

Result<Value> numbers(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value::number(a + b);
    case Op::kSub:
      return Value::number(a - b);
    case Op::kMul:
      return Value::number(a * b);
    case Op::kPow:
      return Value::number(std::pow(a, b));
    default:
      break;
  }
  if (b == 0) return division_by_zero();
  if (op == Op::kDiv) return Value::number(a / b);
  if (op == Op::kFloorDiv) return Value::number(std::floor(a / b));
  const double rest = std::fmod(a, b);
  return Value::number(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);
}

Result<Value> concatenate(Budget& budget, const Text& left, const Text& right) {
  SPUD_TRY(budget.bytes(left.bytes.size() + right.bytes.size()));
  TextBuilder out;
  out.append(left);
  out.append(right);
  return Value::text(out.take());
}

Result<Value> repeat_list(Budget& budget, const List& list, std::int64_t count) {
  const std::size_t times = count > 0 ? static_cast<std::size_t>(count) : 0;
  const auto total = checked_mul(times, list.items.size());
  SPUD_TRY(budget.step(total.value_or(SIZE_MAX)));
  std::vector<Value> items;
  for (std::size_t i = 0; i < times && !list.items.empty(); ++i) {
    items.insert(items.end(), list.items.begin(), list.items.end());
  }
  return make_list(std::move(items), list.tuple);
}

Result<Value> join_lists(Budget& budget, const List& left, const List& right) {
  SPUD_TRY(budget.step(left.items.size() + right.items.size()));
  std::vector<Value> items = left.items;
  items.insert(items.end(), right.items.begin(), right.items.end());
  return make_list(std::move(items), left.tuple);
}

}  // namespace

Result<Value> binary(Budget& budget, Op op, const Value& left, const Value& right) {
  if (op == Op::kConcat) {
    SPUD_TRY(const TextPtr a, to_text(budget, left));
    SPUD_TRY(const TextPtr b, to_text(budget, right));
    return concatenate(budget, *a, *b);
  }
  const auto int_left = left.as_int();
  const auto int_right = right.as_int();
  if (int_left && int_right) return integers(op, *int_left, *int_right);
  const auto number_left = left.as_number();
  const auto number_right = right.as_number();
  if (number_left && number_right) return numbers(op, *number_left, *number_right);
  const Text* text_left = left.as_text();
  const Text* text_right = right.as_text();
  if (op == Op::kAdd && text_left && text_right) {
    return concatenate(budget, *text_left, *text_right);
  }
  if (op == Op::kAdd && left.as_list() && right.as_list()) {
    return join_lists(budget, *left.as_list(), *right.as_list());
  }
  if (op == Op::kMul && (int_left || int_right)) {
    const Value& sequence = int_left ? right : left;
    const std::int64_t count = int_left ? *int_left : *int_right;
    if (const Text* text = sequence.as_text()) {
      SPUD_TRY(Text repeated, repeat(budget, *text, count));
      return Value::text(std::move(repeated));
    }
    if (const List* list = sequence.as_list()) return repeat_list(budget, *list, count);
  }
  if (op == Op::kMod && text_left) {
    return fail(ErrorCode::kUnimplemented, "formatting a string with '%' is not supported");
  }
  return not_defined(op, left, right);
}

Result<bool> compare(Op op, const Value& left, const Value& right) {
  const auto ordered = [&](const Value& a, const Value& b) -> Result<bool> {
    auto result = less(a, b);
    if (!result) return not_defined(op, left, right);
    return result;
  };
  switch (op) {
    case Op::kEq:
      return equal(left, right);
    case Op::kNe:
      return !equal(left, right);
    case Op::kLt:
      return ordered(left, right);
    case Op::kGt:
      return ordered(right, left);
    case Op::kIn:
      return contains(right, left);
    case Op::kNotIn: {
      SPUD_TRY(const bool found, contains(right, left));
      return !found;
    }
    default:
      break;
  }
  // <= is "less or equal", not "not greater": NaN is neither.
  if (equal(left, right)) return true;
  return op == Op::kLe ? ordered(left, right) : ordered(right, left);
}

Result<Value> negate(const Value& operand) {
  if (const auto integer = operand.as_int()) return integers(Op::kSub, 0, *integer);
  if (const auto number = operand.as_number()) return Value::number(-*number);
  return fail(ErrorCode::kInvalidArgument, "'-' needs a number, not {}", operand.type_name());
}

}  // namespace spud::tokenizer::jinja
