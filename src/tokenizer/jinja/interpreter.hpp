// SPDX-License-Identifier: Apache-2.0
// Runs a parsed template: variables in frames, output into a marked text. All limits are looked at
// here or in Budget; whatever the template does, it ends with a text or an Error.
#pragma once

#include "tokenizer/jinja/ast.hpp"

namespace spud::tokenizer::jinja {

// Says where in the template an error happened.
template <typename T>
Result<T> at_line(int line, Result<T> result) {
  if (result) return result;
  return fail_within(fmt::format("chat template line {}", line), std::move(result).error());
}

struct InterpreterLimits {
  std::size_t max_steps = 0;
  std::size_t max_output_bytes = 0;
  std::size_t max_depth = 0;  // macros within macros; expressions get eight times as many levels
};

class Interpreter {
 public:
  Interpreter(const InterpreterLimits& limits, std::int64_t now_unix_seconds);

  // The name must outlive the interpreter.
  void set_global(std::string_view name, Value value);
  [[nodiscard]] Result<Text> run(const Block& block);

 private:
  enum class Flow { kNext, kBreak, kContinue };
  struct Frame {
    std::vector<std::pair<std::string_view, Value>> variables;
    bool is_macro = false;  // names of the caller's frames are not seen from here
  };

  [[nodiscard]] Result<Flow> execute(const Block& block);
  [[nodiscard]] Result<Flow> execute(const Stmt& statement);
  [[nodiscard]] Result<void> print(const Stmt& statement);
  [[nodiscard]] Result<Flow> run_if(const Stmt& statement);
  [[nodiscard]] Result<Flow> run_for(const Stmt& statement);
  [[nodiscard]] Result<ListPtr> loop_items(const Stmt& statement);
  [[nodiscard]] Result<Flow> run_with(const Stmt& statement);
  [[nodiscard]] Result<void> run_set(const Stmt& statement);
  [[nodiscard]] Result<void> run_set_block(const Stmt& statement);
  [[nodiscard]] Result<void> run_filter_block(const Stmt& statement);
  [[nodiscard]] Result<void> assign(const Stmt& statement, Value value);
  [[nodiscard]] Result<void> unpack(const Stmt& statement, const Value& value);
  // The output of a block, through the statement's filters.
  [[nodiscard]] Result<Value> captured(const Stmt& statement);
  [[nodiscard]] Result<Value> capture(const Block& block);

  [[nodiscard]] Result<Value> evaluate(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_kind(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_name(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_items(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_dict(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_slice(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_compare(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_filter(const Expr& node, const Value& input);
  [[nodiscard]] Result<Value> evaluate_test(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_call(const Expr& node);
  [[nodiscard]] Result<Value> evaluate_method(const Expr& node, const Value& object,
                                              const Arguments& arguments);
  // list.append(x) and the like; nothing when it is no such call.
  [[nodiscard]] Result<std::optional<Value>> mutate(const Expr& callee, const Arguments& arguments);
  [[nodiscard]] Result<Value> call_macro(const Stmt& macro, const Arguments& arguments);
  [[nodiscard]] Result<Arguments> evaluate_arguments(const Expr& node);

  Value* find_variable(std::string_view name) noexcept;
  // The variable or namespace member an expression names; null when it is another expression.
  Value* find_place(const Expr& place) noexcept;
  void set_variable(std::string_view name, Value value);
  [[nodiscard]] Result<void> emit(const Text& text);

  InterpreterLimits limits_;
  Budget budget_;
  Environment environment_;
  std::vector<Frame> frames_;
  TextBuilder* out_ = nullptr;
  std::size_t depth_ = 0;
  std::size_t macro_depth_ = 0;
};

}  // namespace spud::tokenizer::jinja
