// SPDX-License-Identifier: Apache-2.0
#include "tokenizer/chat_template.hpp"

#include "tokenizer/jinja/interpreter.hpp"
#include "tokenizer/jinja/parser.hpp"

namespace spud::tokenizer {
namespace {

using jinja::Dict;
using jinja::Text;
using jinja::Value;

// Everything that comes with a request is the user's, whatever the field: roles, names, tool
// descriptions and their keys too.
Result<Value> from_json(const boost::json::value& json, int depth) {
  if (depth > jinja::kMaxValueDepth) {
    return fail(ErrorCode::kInvalidArgument, "the messages nest deeper than the limit of {}",
                jinja::kMaxValueDepth);
  }
  switch (json.kind()) {
    case boost::json::kind::null:
      return Value::none();
    case boost::json::kind::bool_:
      return Value::boolean(json.get_bool());
    case boost::json::kind::int64:
      return Value::integer(json.get_int64());
    case boost::json::kind::uint64:
      return Value::number(static_cast<double>(json.get_uint64()));
    case boost::json::kind::double_:
      return Value::number(json.get_double());
    case boost::json::kind::string:
      return Value::text(Text::from_user(std::string(json.get_string())));
    case boost::json::kind::array: {
      std::vector<Value> items;
      for (const boost::json::value& item : json.get_array()) {
        SPUD_TRY(Value value, from_json(item, depth + 1));
        items.push_back(std::move(value));
      }
      return jinja::make_list(std::move(items));
    }
    case boost::json::kind::object: {
      std::vector<Dict::Entry> entries;
      for (const auto& [key, item] : json.get_object()) {
        SPUD_TRY(Value value, from_json(item, depth + 1));
        entries.push_back(
            {std::make_shared<const Text>(Text::from_user(std::string(key))), std::move(value)});
      }
      return jinja::make_dict(std::move(entries));
    }
  }
  return Value::none();
}

std::vector<PromptPiece> to_pieces(const Text& text) {
  std::vector<PromptPiece> pieces;
  std::size_t at = 0;
  const auto push = [&](std::size_t end, bool from_user) {
    if (end > at) pieces.push_back({text.bytes.substr(at, end - at), from_user});
    at = end;
  };
  for (const TextRange& range : text.user) {
    push(range.begin, false);
    push(range.end, true);
  }
  push(text.bytes.size(), false);
  return pieces;
}

class JinjaTemplate final : public ChatTemplate {
 public:
  explicit JinjaTemplate(jinja::Block block) : block_(std::move(block)) {}

  Result<std::vector<PromptPiece>> render(const ChatTemplateInput& input,
                                          const ChatTemplateLimits& limits) const override {
    jinja::Interpreter interpreter({.max_steps = limits.max_steps,
                                    .max_output_bytes = limits.max_output_bytes,
                                    .max_depth = limits.max_depth},
                                   input.now_unix_seconds);
    const auto set_json = [&](std::string_view name,
                              const boost::json::value& json) -> Result<void> {
      SPUD_TRY(Value value, from_json(json, 1));
      interpreter.set_global(name, std::move(value));
      return {};
    };
    // The first of two globals with one name is found: a client's variables come last.
    SPUD_TRY(set_json("messages", input.messages));
    SPUD_TRY(set_json("tools", input.tools));
    interpreter.set_global("documents", Value::none());
    interpreter.set_global("add_generation_prompt", Value::boolean(input.add_generation_prompt));
    interpreter.set_global("bos_token", Value::text(input.bos_token));
    interpreter.set_global("eos_token", Value::text(input.eos_token));
    for (const auto& [name, value] : input.extra) SPUD_TRY(set_json(name, value));
    SPUD_TRY(const Text text, interpreter.run(block_));
    return to_pieces(text);
  }

 private:
  jinja::Block block_;
};

}  // namespace

Result<std::shared_ptr<const ChatTemplate>> ChatTemplate::parse(std::string_view source) {
  if (source.size() > kMaxTemplateBytes) {
    return fail(ErrorCode::kInvalidArgument,
                "the chat template has {} bytes, more than the limit of {}", source.size(),
                kMaxTemplateBytes);
  }
  SPUD_TRY(jinja::Block block, jinja::parse_template(source));
  return std::make_shared<const JinjaTemplate>(std::move(block));
}

}  // namespace spud::tokenizer
