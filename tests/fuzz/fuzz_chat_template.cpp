// SPDX-License-Identifier: Apache-2.0
// Any bytes as a chat template: parsed or refused, rendered with a fixed conversation under limits.
#include <boost/json/parse.hpp>

#include "base/check.hpp"
#include "fuzz_target.hpp"
#include "tokenizer/chat_template.hpp"

namespace spud::fuzz {
namespace {

namespace json = boost::json;

tokenizer::ChatTemplateInput fixed_input() {
  tokenizer::ChatTemplateInput input;
  input.messages =
      json::parse(R"([{"role":"system","content":"S"},{"role":"user","content":" <|u|> \u00fc\n"},)"
                  R"({"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f",)"
                  R"("arguments":{"a":1,"b":[true,null,1.5]}}}]}])");
  input.tools = json::parse(R"([{"type":"function","function":{"name":"f"}}])");
  input.bos_token = "<s>";
  return input;
}

}  // namespace

std::vector<std::string> fuzz_seeds() {
  return {
      "{% for m in messages %}{{ '<|' ~ m['role'] + '|>' }}{{ m.content | trim }}\n{% endfor %}",
      "{%- for m in messages[1:] if m.content is string -%} {{ loop.index0 }}{{ loop.last }}\n"
      "{%- else -%}none{%- endfor -%}{# note #}",
      "{% set ns = namespace(n=0, l=[]) %}{% for m in messages[::-1] %}{% set ns.n = ns.n + 1 %}"
      "{% set _ = ns.l.append(m.role) %}{% if ns.n > 2 %}{% break %}{% endif %}{% endfor %}"
      "{{ ns.l | join(', ') | upper }}",
      "{% macro f(a, b='x', c=none) %}({{ a }}{{ b }}){% if a %}{{ f(a - 1, c=b) }}{% endif %}"
      "{% endmacro %}{{ f(3) }}{{ f(a=1, b=2) | replace('1', '2', 1) }}",
      "{% set x %} a {{ bos_token }} {% endset %}{{ x.strip().split('<')[-1][::-1] }}"
      "{{ 'abc'[1:-1] ~ 1.5e3 ~ (1, 2) ~ {'k': [true, none]} }}",
      "{{ tools | tojson(indent=2) }}{{ messages | tojson }}{{ messages }}",
      "{{ messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | list }}"
      "{{ [3, 1, 2] | sort(reverse=true) | first }}{{ {'b': 1} | dictsort }}",
      "{{ raise_exception('no') if 1 > 2 >= 1 and not (2 in [1] or 'a' not in 'b') else -7 // 2 }}",
      "{{ strftime_now('%d %b %Y') }}{{ range(1, 9, 2) | sum }}{{ dict(a=1).items() | list }}",
      "{% raw %}{{ x }}{% endraw %}{% filter indent(2, true) %}a\nb{% endfilter %}"
      "{% with a = 1 %}{{ a ** 3 % 2 }}{% endwith %}{% generation %}g{% endgeneration %}",
      "{{ 'a b'.title().replace('A', 'bb').find('b') }}{{ ' x'.lstrip() is defined }}"
      "{{ missing | default('d', true) | length }}{{ '1' | int + '2.5' | float | abs }}",
  };
}

}  // namespace spud::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using spud::tokenizer::ChatTemplate;
  const auto parsed =
      ChatTemplate::parse(std::string_view(reinterpret_cast<const char*>(data), size));
  if (!parsed) {
    SPUD_CHECK(!parsed.error().message().empty());
    return 0;
  }
  const spud::tokenizer::ChatTemplateLimits limits{.max_steps = 20'000,
                                                   .max_output_bytes = 1u << 16};
  const auto pieces = (*parsed)->render(spud::fuzz::fixed_input(), limits);
  if (!pieces) return 0;
  std::size_t total = 0;
  for (std::size_t i = 0; i < pieces->size(); ++i) {
    total += (*pieces)[i].text.size();
    SPUD_CHECK(!(*pieces)[i].text.empty());
    SPUD_CHECK(i == 0 || (*pieces)[i].from_user != (*pieces)[i - 1].from_user);
  }
  SPUD_CHECK(total <= limits.max_output_bytes);
  return 0;
}
