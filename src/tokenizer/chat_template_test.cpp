// SPDX-License-Identifier: Apache-2.0
// What the golden cases cannot say: marks of user text, limits, errors and their lines, time.
#include "tokenizer/chat_template.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/json.hpp>

namespace spud::tokenizer {
namespace {

namespace json = boost::json;
using testing::HasSubstr;

ChatTemplateInput input_of(std::string_view messages) {
  ChatTemplateInput input;
  input.messages = json::parse(messages);
  return input;
}

// User text in brackets, "{template}[user]".
std::string marked(std::string_view source, const ChatTemplateInput& input) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) return "error: " + parsed.error().message();
  const auto pieces = (*parsed)->render(input);
  if (!pieces) return "error: " + pieces.error().message();
  std::string out;
  for (const PromptPiece& piece : *pieces) {
    EXPECT_FALSE(piece.text.empty());
    out += piece.from_user ? "[" + piece.text + "]" : piece.text;
  }
  return out;
}

std::string marked(std::string_view source) {
  return marked(
      source, input_of(R"([{"role":"user","content":" Hi <b> you ","n":[{"t":"a"},{"t":"b"}]}])"));
}

TEST(ChatTemplateMarks, UserTextIsMarkedWhereverItGoes) {
  EXPECT_EQ(marked("<|{{ messages[0].content }}|>"), "<|[ Hi <b> you ]|>");
  EXPECT_EQ(marked("{{ messages[0].content | trim }}!"), "[Hi <b> you]!");
  EXPECT_EQ(marked("{{ 'a' ~ messages[0].content.strip() + 'b' }}"), "a[Hi <b> you]b");
  EXPECT_EQ(marked("{{ messages[0].content[1:3] }}"), "[Hi]");
  EXPECT_EQ(marked("{{ messages[0].content | upper }}"), "[ HI <B> YOU ]");
  EXPECT_EQ(marked("{{ messages[0].content.split() | join('-') }}"), "[Hi]-[<b>]-[you]");
  EXPECT_EQ(marked("{{ messages[0].content | replace('<b>', '*') }}"), "[ Hi ]*[ you ]");
  EXPECT_EQ(marked("{{ 'x-x' | replace('-', messages[0].role) }}"), "x[user]x");
  EXPECT_EQ(marked("{{ messages[0].content | escape }}"), "[ Hi &lt;b&gt; you ]");
  EXPECT_EQ(marked("{{ (messages[0].role * 2) | title }}"), "[Useruser]");
  EXPECT_EQ(marked("{{ messages[0].role | tojson }}"), "\"[user]\"");
  EXPECT_EQ(marked("{{ messages[0].n | tojson }}"), R"([{"[t]": "[a]"}, {"[t]": "[b]"}])");
  EXPECT_EQ(marked("{{ messages[0].n }}"), "[{'[t]': '[a]'}, {'[t]': '[b]'}]");
  EXPECT_EQ(marked("{% for k, v in messages[0].n[0].items() %}{{ k }}={{ v }}{% endfor %}"),
            "[t]=[a]");
  EXPECT_EQ(marked("{% set x %}({{ messages[0].role }}){% endset %}{{ x }}"), "([user])");
  EXPECT_EQ(marked("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(messages[0].role) | upper }}"),
            "<[USER]>");
  EXPECT_EQ(marked("{{ messages[0].role | indent(2, true) }}"), "  [user]");
  EXPECT_EQ(marked("{% for c in messages[0].role %}{{ c }}.{% endfor %}"), "[u].[s].[e].[r].");
  EXPECT_EQ(marked("{% set ns = namespace(s='') %}{% for m in messages %}"
                   "{% set ns.s = ns.s ~ '|' ~ m.role %}{% endfor %}{{ ns.s }}"),
            "|[user]");
}

TEST(ChatTemplateMarks, ToolsAndExtraVariablesAreTheUsersToo) {
  ChatTemplateInput input = input_of("[]");
  input.tools = json::parse(R"([{"name":"<|x|>"}])");
  input.extra["style"] = "terse";
  input.bos_token = "<s>";
  EXPECT_EQ(marked("{{ bos_token }}{{ tools[0].name }}{{ style }}", input), "<s>[<|x|>terse]");
}

TEST(ChatTemplate, ANullToolListIsNone) {
  EXPECT_EQ(marked("{{ tools is none }}{{ documents is none }}"), "TrueTrue");
}

TEST(ChatTemplate, TellsTheTimeInUtc) {
  ChatTemplateInput input = input_of("[]");
  input.now_unix_seconds = 1'700'000'000;  // 2023-11-14 22:13:20
  EXPECT_EQ(marked("{{ strftime_now('%Y-%m-%d %H:%M:%S, %d %b %Y, %-I %p %%') }}", input),
            "2023-11-14 22:13:20, 14 Nov 2023, 10 PM %");
  EXPECT_THAT(marked("{{ strftime_now('%10000000d') }}", input),
              HasSubstr("'%1' is not supported"));
  EXPECT_THAT(marked("{{ strftime_now('%') }}", input), HasSubstr("error"));
}

ErrorCode code_of(std::string_view source, const ChatTemplateLimits& limits = {}) {
  const auto parsed = ChatTemplate::parse(source);
  if (!parsed) return parsed.error().code();
  const auto rendered = (*parsed)->render(input_of("[]"), limits);
  return rendered ? ErrorCode::kInternal : rendered.error().code();
}

TEST(ChatTemplateLimits, EndlessWorkEnds) {
  for (const std::string_view source : {
           "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
           "{% set ns = namespace(s='xxxxxxxx') %}{% for i in range(99) %}"
           "{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
           "{{ 'x' * 999999999999 }}",
           "{{ ('x' * 9999999) ~ ('x' * 9999999) }}",
           "{{ [1] * 999999999999 }}",
           "{{ range(999999999) | list }}",
           "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
           "{% macro m(x) %}{{ m(x + 1) ~ m(x + 1) }}{% endmacro %}{{ m(0) }}",
           "{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
           "{{ ('a' * 4000000) | replace('a', 'bbbbbbbbbb') }}",
           "{{ ('a,' * 100000).split(',') | join('x' * 10000) }}",
           "{{ ([0] * 100000) * 9999 }}",
           "{% set ns = namespace(l=[]) %}{% for i in range(200) %}{% set ns.l = [ns.l] %}{% "
           "endfor %}",
           "{{ ('a\n' * 100000) | indent(10000) }}",
           // Lists that hold one list twice: little memory, no end of walking.
           "{% set ns = namespace(a=[1], b=[1]) %}{% for i in range(90) %}"
           "{% set ns.a = [ns.a, ns.a] %}{% set ns.b = [ns.b, ns.b] %}{% endfor %}{{ ns.a == ns.b "
           "}}",
           "{% set a = [range(100000) | list] * 40 %}{% for i in range(9999) %}"
           "{% if a == [0] or 5 in a %}{% endif %}{% set b = a | unique %}{% endfor %}",
           "{% set t = 'ab' * 500000 %}{{ (t ~ 'c') in (t * 4) }}{{ t.find('a' * 90000) }}"
           "{{ t.strip('b' * 400000 ~ 'a') }}{{ t.replace('ab' * 9999 ~ 'c', '') }}",
       }) {
    EXPECT_EQ(code_of(source), ErrorCode::kResourceExhausted) << source;
  }
}

TEST(ChatTemplateLimits, AreTheCallers) {
  EXPECT_EQ(code_of("{% for i in range(50) %}x{% endfor %}", {.max_steps = 100}),
            ErrorCode::kResourceExhausted);
  EXPECT_EQ(code_of("xxxxxxxxxxx", {.max_output_bytes = 10}), ErrorCode::kResourceExhausted);
  EXPECT_EQ(code_of("xxxxxxxxxx", {.max_output_bytes = 10}), ErrorCode::kInternal);
}

std::string repeated(std::string_view unit, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += unit;
  return text;
}

TEST(ChatTemplateLimits, DeepNestingIsAnErrorNotACrash) {
  const int many = 50'000;
  for (const std::string& source : {"{{ " + repeated("(", many) + repeated(")", many) + " }}",
                                    "{{ " + repeated("[", many) + repeated("]", many) + " }}",
                                    "{{ " + repeated("{'a':", many) + repeated("}", many) + " }}",
                                    "{{ " + repeated("-", many) + "1 }}",
                                    "{{ " + repeated("not ", many) + "1 }}",
                                    "{{ 1" + repeated("+1", many) + " }}",
                                    "{{ 1" + repeated("~1", many) + " }}",
                                    "{{ x" + repeated(".a", many) + " }}",
                                    "{{ x" + repeated("|trim", many) + " }}",
                                    "{{ x" + repeated("[0]", many) + " }}",
                                    "{{ x" + repeated("()", many) + " }}",
                                    "{{ 1" + repeated(" if 1 else 1", many) + " }}",
                                    "{{ 1" + repeated(" if 1", many) + " }}",
                                    "{{ 1" + repeated(" is odd", many) + " }}",
                                    "{{ 2" + repeated("**2", many) + " }}",
                                    "{{ 1" + repeated(" or 1", many) + " }}",
                                    repeated("{% if 1 %}", many),
                                    repeated("{% for i in x %}", many),
                                    repeated("{% macro m() %}", many),
                                    repeated("{% generation %}", many),
                                    "{{ f" + repeated("(f", many) + repeated(")", many) + " }}"}) {
    const auto parsed = ChatTemplate::parse(source);
    ASSERT_FALSE(parsed) << source.substr(0, 40);
    EXPECT_EQ(parsed.error().code(), ErrorCode::kResourceExhausted)
        << source.substr(0, 40) << ": " << parsed.error().message();
  }
  // Long without being deep is fine.
  EXPECT_EQ(code_of("{{ [" + repeated("1,", 10'000) + "] | length }}"), ErrorCode::kInternal);
  EXPECT_EQ(code_of("{% if 0 %}" + repeated("{% elif 0 %}", 10'000) + "{% endif %}"),
            ErrorCode::kInternal);
}

TEST(ChatTemplateLimits, MacrosOfDeepExpressionsAreBoundedTogether) {
  const std::string deep = repeated("(1 + ", 80) + "m(n + 1)" + repeated(")", 80);
  EXPECT_EQ(code_of("{% macro m(n) %}{{ " + deep + " }}{% endmacro %}{{ m(0) }}"),
            ErrorCode::kResourceExhausted);
}

TEST(ChatTemplate, UnsupportedThingsAreNamedWithTheirLine) {
  const std::pair<std::string_view, std::string_view> cases[] = {
      {"\n{% include 'x' %}", "line 2: the tag '{% include %}' is not supported"},
      {"{% call m() %}{% endcall %}", "line 1: the tag '{% call %}' is not supported"},
      {"\n\n{{ x | xmlattr }}", "line 3: the filter 'xmlattr' is not supported"},
      {"{{ 1 is sameas 1 }}", "the test 'sameas' is not supported"},
      {"{% for x in y recursive %}{% endfor %}", "recursive loop"},
      {"{{ f(*args) }}", "unpacking"},
      {"a\n{{ 'x'.encode() }}", "line 2: the method 'encode' of str is not supported"},
      {"{{ '%s' % 1 }}", "formatting a string"},
      {"{{ {1: 2} }}", "a dict key that is not a string"},
      {"{{ [1] | map('nope') }}", "the filter 'nope'"},
      {"{% set ns = namespace() %}{% set ns.self = ns %}", "a namespace inside another"},
      {"{% set ns = namespace() %}{% set l = [ns] %}", "a namespace inside another value"},
  };
  for (const auto& [source, message] : cases) {
    EXPECT_EQ(code_of(source), ErrorCode::kUnimplemented) << source;
    EXPECT_THAT(marked(source), HasSubstr(message));
  }
}

TEST(ChatTemplate, TheTemplatesOwnRefusalReachesTheClient) {
  EXPECT_EQ(code_of("{{ raise_exception('roles must alternate') }}"), ErrorCode::kInvalidArgument);
  EXPECT_THAT(marked("\n{{ raise_exception('roles must alternate') }}"),
              HasSubstr("chat template line 2: the chat template refuses the messages: roles must "
                        "alternate"));
}

TEST(ChatTemplate, UndefinedNamesAreNamed) {
  EXPECT_THAT(marked("{{ 'a' + massages }}"), HasSubstr("'massages' is undefined"));
  EXPECT_THAT(marked("{{ messages[0].contents.x }}"), HasSubstr("'contents' of dict is undefined"));
}

TEST(ChatTemplate, HostileMessagesAreErrorsOrText) {
  std::string deep;
  for (int i = 0; i < 31; ++i) deep += "[";
  deep += std::string(31, ']');
  EXPECT_EQ(marked("{{ messages | length }}", input_of(deep)), "1");
  json::value nested = json::array();
  for (int i = 0; i < 500; ++i) nested = json::array{nested};
  ChatTemplateInput input;
  input.messages = nested;
  EXPECT_THAT(marked("x", input), HasSubstr("nest deeper"));
  EXPECT_EQ(marked("{{ messages }}", input_of("null")), "None");
  EXPECT_EQ(marked("{{ messages }}", input_of("18446744073709551615")), "1.8446744073709552e+19");
  EXPECT_EQ(marked("{{ messages[0].a }}", input_of("[{\"a\":\"\\u0000\\ud83d\\ude00\"}]")),
            std::string("[\0😀]", 7));
}

TEST(ChatTemplate, AHugeTemplateIsRefused) {
  EXPECT_FALSE(ChatTemplate::parse(std::string(kMaxTemplateBytes + 1, 'x')));
}

}  // namespace
}  // namespace spud::tokenizer
