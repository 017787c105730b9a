// SPDX-License-Identifier: Apache-2.0
// Every case of tests/golden/chat_templates.json must print what Python's Jinja2 printed, or be an
// error where it was one.
#include <gtest/gtest.h>

#include <boost/json.hpp>
#include <fstream>
#include <sstream>

#include "tokenizer/chat_template.hpp"

namespace spud::tokenizer {
namespace {

namespace json = boost::json;

Result<std::string> render(const json::object& test) {
  SPUD_TRY(const auto parsed, ChatTemplate::parse(std::string(test.at("template").as_string())));
  ChatTemplateInput input;
  for (const auto& [key, value] : test.at("input").as_object()) {
    if (key == "messages") {
      input.messages = value;
    } else if (key == "tools") {
      input.tools = value;
    } else if (key == "add_generation_prompt") {
      input.add_generation_prompt = value.as_bool();
    } else if (key == "bos_token") {
      input.bos_token = std::string(value.as_string());
    } else if (key == "eos_token") {
      input.eos_token = std::string(value.as_string());
    } else if (key != "documents") {
      input.extra[key] = value;
    }
  }
  SPUD_TRY(const auto pieces, parsed->render(input));
  std::string text;
  for (const PromptPiece& piece : pieces) text += piece.text;
  return text;
}

TEST(ChatTemplateGolden, PrintsWhatJinja2Prints) {
  std::ifstream in(std::string(SPUD_SOURCE_DIR) + "/tests/golden/chat_templates.json");
  ASSERT_TRUE(in) << "tests/golden/chat_templates.json is missing";
  std::stringstream text;
  text << in.rdbuf();
  const json::value cases = json::parse(text.str());
  ASSERT_GT(cases.as_array().size(), 100u);
  for (const json::value& item : cases.as_array()) {
    const json::object& test = item.as_object();
    SCOPED_TRACE(std::string(test.at("name").as_string()));
    const auto rendered = render(test);
    if (const json::value* error = test.if_contains("error")) {
      EXPECT_FALSE(rendered) << "printed: " << *rendered << "\nJinja2 says: " << error->as_string();
      if (!rendered) {
        EXPECT_NE(rendered.error().code(), ErrorCode::kInternal);
        EXPECT_NE(rendered.error().message().find("chat template line"), std::string::npos)
            << rendered.error().message();
      }
      continue;
    }
    ASSERT_TRUE(rendered) << rendered.error().message();
    EXPECT_EQ(*rendered, std::string(test.at("expected").as_string()));
  }
}

}  // namespace
}  // namespace spud::tokenizer
