// SPDX-License-Identifier: Apache-2.0
// Statements. Expressions are in evaluate.cpp.
#include "tokenizer/jinja/interpreter.hpp"

#include <algorithm>

#include "tokenizer/jinja/function.hpp"
#include "tokenizer/jinja/print.hpp"

namespace spud::tokenizer::jinja {

Interpreter::Interpreter(const InterpreterLimits& limits, std::int64_t now_unix_seconds)
    : limits_(limits),
      budget_(limits.max_steps, limits.max_output_bytes),
      environment_{budget_, now_unix_seconds} {
  frames_.emplace_back();
}

void Interpreter::set_global(std::string_view name, Value value) {
  frames_.front().variables.emplace_back(name, std::move(value));
}

Result<Text> Interpreter::run(const Block& block) {
  TextBuilder out;
  out_ = &out;
  const auto flow = execute(block);
  out_ = nullptr;
  if (!flow) return std::unexpected(flow.error());
  return out.take();
}

Result<void> Interpreter::emit(const Text& text) {
  if (text.bytes.size() > limits_.max_output_bytes - out_->size()) {
    return fail(ErrorCode::kResourceExhausted,
                "the chat template writes more than the limit of {} bytes",
                limits_.max_output_bytes);
  }
  SPUD_TRY(budget_.bytes(text.bytes.size()));
  out_->append(text);
  return {};
}

Value* Interpreter::find_variable(std::string_view name) noexcept {
  const auto in_frame = [&](Frame& frame) -> Value* {
    // From the back: a later set of the same name is found first (there is only one anyway).
    const auto found = std::ranges::find_if(
        frame.variables, [&](const auto& variable) { return variable.first == name; });
    return found == frame.variables.end() ? nullptr : &found->second;
  };
  for (std::size_t i = frames_.size(); i-- > 1;) {
    if (Value* found = in_frame(frames_[i])) return found;
    if (frames_[i].is_macro) break;
  }
  return in_frame(frames_.front());
}

void Interpreter::set_variable(std::string_view name, Value value) {
  auto& variables = frames_.back().variables;
  const auto found =
      std::ranges::find_if(variables, [&](const auto& variable) { return variable.first == name; });
  if (found == variables.end()) {
    variables.emplace_back(name, std::move(value));
  } else {
    found->second = std::move(value);
  }
}

Result<Interpreter::Flow> Interpreter::execute(const Block& block) {
  for (const auto& statement : block) {
    SPUD_TRY(budget_.step());
    SPUD_TRY(const Flow flow, execute(*statement));
    if (flow != Flow::kNext) return flow;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::execute(const Stmt& statement) {
  switch (statement.kind) {
    case StmtKind::kText:
      SPUD_TRY(emit(Text{.bytes = statement.text, .user = {}}));
      break;
    case StmtKind::kPrint:
      SPUD_TRY(print(statement));
      break;
    case StmtKind::kIf:
      return run_if(statement);
    case StmtKind::kFor:
      return run_for(statement);
    case StmtKind::kSet:
      SPUD_TRY(run_set(statement));
      break;
    case StmtKind::kSetBlock:
      SPUD_TRY(run_set_block(statement));
      break;
    case StmtKind::kMacro:
      set_variable(statement.text,
                   Value(Value::Variant(std::make_shared<const Function>(Function{&statement}))));
      break;
    case StmtKind::kFilter:
      SPUD_TRY(run_filter_block(statement));
      break;
    case StmtKind::kWith:
      return run_with(statement);
    case StmtKind::kBreak:
      return Flow::kBreak;
    case StmtKind::kContinue:
      return Flow::kContinue;
  }
  return Flow::kNext;
}

Result<void> Interpreter::print(const Stmt& statement) {
  SPUD_TRY(const Value value, evaluate(*statement.exprs[0]));
  SPUD_TRY(const TextPtr text, at_line(statement.line, to_text(budget_, value)));
  return emit(*text);
}

Result<Interpreter::Flow> Interpreter::run_if(const Stmt& statement) {
  for (std::size_t i = 0; i < statement.blocks.size(); ++i) {
    if (i < statement.exprs.size()) {
      SPUD_TRY(const Value condition, evaluate(*statement.exprs[i]));
      if (!condition.truth()) continue;
    }
    return execute(statement.blocks[i]);
  }
  return Flow::kNext;
}

// The items a for goes over, those its "if" drops left out.
Result<ListPtr> Interpreter::loop_items(const Stmt& statement) {
  SPUD_TRY(const Value iterable, evaluate(*statement.exprs[0]));
  if (statement.exprs[1] == nullptr) {
    if (const ListPtr* list = iterable.get<ListPtr>()) return *list;
  }
  SPUD_TRY(std::vector<Value> items, at_line(statement.line, iterate(iterable)));
  SPUD_TRY(budget_.step(items.size()));
  if (statement.exprs[1] == nullptr) {
    return std::make_shared<const List>(List{.items = std::move(items)});
  }
  std::vector<Value> kept;
  for (Value& item : items) {
    frames_.emplace_back();
    SPUD_TRY(unpack(statement, item));
    SPUD_TRY(const Value condition, evaluate(*statement.exprs[1]));
    frames_.pop_back();
    if (condition.truth()) kept.push_back(std::move(item));
  }
  return std::make_shared<const List>(List{.items = std::move(kept)});
}

Result<Interpreter::Flow> Interpreter::run_for(const Stmt& statement) {
  SPUD_TRY(const ListPtr items, loop_items(statement));
  if (items->items.empty()) return execute(statement.blocks[1]);
  const Value* outer = find_variable("loop");
  const auto* outer_loop = outer == nullptr ? nullptr : outer->get<std::shared_ptr<const Loop>>();
  const int level = outer_loop == nullptr ? 1 : (*outer_loop)->level + 1;
  for (std::size_t i = 0; i < items->items.size(); ++i) {
    SPUD_TRY(budget_.step());
    frames_.emplace_back();
    set_variable("loop",
                 Value(Value::Variant(std::make_shared<const Loop>(Loop{items, i, level}))));
    SPUD_TRY(unpack(statement, items->items[i]));
    SPUD_TRY(const Flow flow, execute(statement.blocks[0]));
    frames_.pop_back();
    if (flow == Flow::kBreak) break;
  }
  return Flow::kNext;
}

Result<Interpreter::Flow> Interpreter::run_with(const Stmt& statement) {
  Frame frame;
  for (std::size_t i = 0; i < statement.names.size(); ++i) {
    SPUD_TRY(Value value, evaluate(*statement.exprs[i]));
    frame.variables.emplace_back(statement.names[i], std::move(value));
  }
  frames_.push_back(std::move(frame));
  SPUD_TRY(const Flow flow, execute(statement.blocks[0]));
  frames_.pop_back();
  return flow;
}

Result<void> Interpreter::run_set(const Stmt& statement) {
  SPUD_TRY(Value value, evaluate(*statement.exprs[0]));
  return assign(statement, std::move(value));
}

Result<void> Interpreter::run_set_block(const Stmt& statement) {
  SPUD_TRY(Value value, captured(statement));
  return assign(statement, std::move(value));
}

Result<void> Interpreter::run_filter_block(const Stmt& statement) {
  SPUD_TRY(const Value value, captured(statement));
  SPUD_TRY(const TextPtr text, at_line(statement.line, to_text(budget_, value)));
  return emit(*text);
}

Result<Value> Interpreter::captured(const Stmt& statement) {
  frames_.emplace_back();
  SPUD_TRY(Value value, capture(statement.blocks[0]));
  frames_.pop_back();
  for (const ExprPtr& filter : statement.exprs) {
    SPUD_TRY(value, evaluate_filter(*filter, value));
  }
  return value;
}

Result<Value> Interpreter::capture(const Block& block) {
  TextBuilder captured_text;
  TextBuilder* const outer = std::exchange(out_, &captured_text);
  const auto flow = execute(block);
  out_ = outer;
  if (!flow) return std::unexpected(flow.error());
  return Value::text(captured_text.take());
}

Result<void> Interpreter::assign(const Stmt& statement, Value value) {
  if (!statement.is_member) {
    if (statement.names.size() > 1) return unpack(statement, value);
    set_variable(statement.names[0], std::move(value));
    return {};
  }
  const auto wrong = [&](ErrorCode code, std::string_view what) {
    return fail(code, "chat template line {}: {}", statement.line, what);
  };
  Value* variable = find_variable(statement.names[0]);
  const auto* space = variable == nullptr ? nullptr : variable->get<std::shared_ptr<Namespace>>();
  if (space == nullptr) {
    return wrong(
        ErrorCode::kInvalidArgument,
        fmt::format("'{}' is not a namespace, its members cannot be set", statement.names[0]));
  }
  if (value.get<std::shared_ptr<Namespace>>() != nullptr) {
    return wrong(ErrorCode::kUnimplemented, "a namespace inside another is not supported");
  }
  if (Value* member = (*space)->find(statement.names[1])) {
    *member = std::move(value);
  } else {
    (*space)->members.emplace_back(statement.names[1], std::move(value));
  }
  return {};
}

Result<void> Interpreter::unpack(const Stmt& statement, const Value& value) {
  if (statement.names.size() == 1) {
    set_variable(statement.names[0], value);
    return {};
  }
  SPUD_TRY(const std::vector<Value> parts, at_line(statement.line, iterate(value)));
  if (parts.size() != statement.names.size()) {
    return fail(ErrorCode::kInvalidArgument, "chat template line {}: {} values for {} variables",
                statement.line, parts.size(), statement.names.size());
  }
  for (std::size_t i = 0; i < parts.size(); ++i) set_variable(statement.names[i], parts[i]);
  return {};
}

}  // namespace spud::tokenizer::jinja
