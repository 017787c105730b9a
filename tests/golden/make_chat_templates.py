# SPDX-License-Identifier: Apache-2.0
"""Makes chat_templates.json: what Python's Jinja2, set up as Hugging Face does, prints.

The templates are our own; they use the constructs that the families' published templates use.
Run by hand after adding a case (needs `pip install jinja2`); the tests only read the result.
"""
import json
import pathlib

import jinja2
from jinja2.ext import Extension, loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment, SandboxedEnvironment


class Generation(Extension):
    """Hugging Face's {% generation %}: prints what is inside."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.Scope(body, lineno=line)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def environment(mutable):
    kind = SandboxedEnvironment if mutable else ImmutableSandboxedEnvironment
    env = kind(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols])
    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    return env


SYSTEM = {"role": "system", "content": "Be brief."}
USER = {"role": "user", "content": " Hi there! "}
ASSISTANT = {"role": "assistant", "content": "Hello <|im_end|> ü 你好"}
TALK = [SYSTEM, USER, ASSISTANT, {"role": "user", "content": "What's 2+2?\n"}]
PARTS = [{"role": "user", "content": [{"type": "text", "text": "Look:"}, {"type": "image"},
                                      {"type": "text", "text": " what is it?"}]}]
TOOLS = [{"type": "function", "function": {
    "name": "get_weather", "description": "Weather <b>now</b> & \"later\" – für Städte",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "A city"},
        "days": {"type": "integer", "enum": [1, 2, 3]},
        "exact": {"type": ["boolean", "null"], "default": False}}, "required": ["city"]}}}]
CALLS = [USER, {"role": "assistant", "content": None, "tool_calls": [
    {"type": "function", "id": "abcdef123", "function": {
        "name": "get_weather", "arguments": {"city": "Köln", "days": 2}}}]},
    {"role": "tool", "content": "12.5 °C", "tool_call_id": "abcdef123"}]
THINK = [USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\nFour.",
                "reasoning_content": None}, {"role": "user", "content": "Sure?"}]

CHATML = """{%- for message in messages -%}
    {%- if loop.first and message.role != 'system' -%}
        {{- '<|im_start|>system\\nYou are helpful.<|im_end|>\\n' -}}
    {%- endif -%}
    {{- '<|im_start|>' ~ message['role'] ~ '\\n' ~ message['content'] | trim ~ '<|im_end|>\\n' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|im_start|>assistant\\n' -}}{%- endif -%}
"""
LLAMA3 = """{{- bos_token }}
{%- if custom_tools is defined %}
    {%- set tools = custom_tools %}
{%- endif %}
{%- if not date_string is defined %}
    {%- set date_string = "26 Jul 2024" %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{#- The system message opens the prompt. #}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{{- "Today Date: " + date_string + "\\n\\n" }}
{%- if tools is not none %}
    {{- "You can call:\\n\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or 'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n'+ message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("One call at a time!") }}
        {%- endif %}
        {%- set tool_call = message.tool_calls[0].function %}
        {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}
        {{- '{"name": "' + tool_call.name + '", ' }}
        {{- '"parameters": ' }}
        {{- tool_call.arguments | tojson }}
        {{- "}" }}
        {{- "<|eot_id|>" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {{- "<|start_header_id|>ipython<|end_header_id|>\\n\\n" }}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
        {{- "<|eot_id|>" }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
QWEN = """{%- if tools %}
    {{- '<|im_start|>system\\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\\n\\n' }}
    {%- endif %}
    {{- "# Tools\\n\\n<tools>" }}
    {%- for tool in tools %}
        {{- "\\n" }}
        {{- tool | tojson }}
    {%- endfor %}
    {{- "\\n</tools><|im_end|>\\n" }}
{%- elif messages[0].role == 'system' %}
    {{- '<|im_start|>system\\n' + messages[0].content + '<|im_end|>\\n' }}
{%- endif %}
{%- set ns = namespace(multi_step_tool=true, last_query_index=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step_tool and message.role == "user" and message.content is string and not(message.content.startswith('<tool_response>') and message.content.endswith('</tool_response>')) %}
        {%- set ns.multi_step_tool = false %}
        {%- set ns.last_query_index = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if message.content is string %}
        {%- set content = message.content %}
    {%- else %}
        {%- set content = '' %}
    {%- endif %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set reasoning_content = '' %}
        {%- if message.reasoning_content is string %}
            {%- set reasoning_content = message.reasoning_content %}
        {%- else %}
            {%- if '</think>' in content %}
                {%- set reasoning_content = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}
                {%- set content = content.split('</think>')[-1].lstrip('\\n') %}
            {%- endif %}
        {%- endif %}
        {%- if loop.index0 > ns.last_query_index and (loop.last or reasoning_content) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + reasoning_content.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {%- if message.tool_calls %}
            {%- for tool_call in message.tool_calls %}
                {%- if (loop.first and content) or (not loop.first) %}{{- '\\n' }}{%- endif %}
                {%- if tool_call.function %}{%- set tool_call = tool_call.function %}{%- endif %}
                {{- '<tool_call>\\n{"name": "' }}{{- tool_call.name }}{{- '", "arguments": ' }}
                {%- if tool_call.arguments is string %}{{- tool_call.arguments }}
                {%- else %}{{- tool_call.arguments | tojson }}{%- endif %}
                {{- '}\\n</tool_call>' }}
            {%- endfor %}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}{{- '<|im_start|>user' }}{%- endif %}
        {{- '\\n<tool_response>\\n' }}{{- content }}{{- '\\n</tool_response>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}
{%- endif %}"""
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_user_prefix = messages[0]['content'] + '\\n\\n' -%}
    {%- else -%}
        {%- set first_user_prefix = messages[0]['content'][0]['text'] + '\\n\\n' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_user_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("Conversation roles must alternate user/assistant/user/assistant/...") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '\\n' + (first_user_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'image' -%}
                {{ '<start_of_image>' }}
            {%- elif item['type'] == 'text' -%}
                {{ item['text'] | trim }}
            {%- endif -%}
        {%- endfor -%}
    {%- else -%}
        {{ raise_exception("Invalid content type") }}
    {%- endif -%}
    {{ '<end_of_turn>\\n' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model\\n'}}
{%- endif -%}
"""
MISTRAL = """{%- if messages[0]["role"] == "system" %}
    {%- set system_message = messages[0]["content"] %}
    {%- set loop_messages = messages[1:] %}
{%- else %}
    {%- set loop_messages = messages %}
{%- endif %}
{%- if not tools is defined %}
    {%- set tools = none %}
{%- endif %}
{%- set user_messages = loop_messages | selectattr("role", "equalto", "user") | list %}
{%- set ns = namespace() %}
{%- set ns.index = 0 %}
{%- for message in loop_messages %}
    {%- if not (message.role == "tool" or message.role == "tool_results" or (message.tool_calls is defined and message.tool_calls is not none)) %}
        {%- if (message["role"] == "user") != (ns.index % 2 == 0) %}
            {{- raise_exception("After the optional system message, roles must alternate") }}
        {%- endif %}
        {%- set ns.index = ns.index + 1 %}
    {%- endif %}
{%- endfor %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if tools is not none and (message == user_messages[-1]) %}
            {{- "[AVAILABLE_TOOLS] [" }}
            {%- for tool in tools %}
                {%- set tool = tool.function %}
                {{- '{"type": "function", "function": {' }}
                {%- for key, val in tool.items() if key != "return" %}
                    {%- if val is string %}
                        {{- '"' + key + '": "' + val + '"' }}
                    {%- else %}
                        {{- '"' + key + '": ' + val|tojson }}
                    {%- endif %}
                    {%- if not loop.last %}{{- ", " }}{%- endif %}
                {%- endfor %}
                {{- "}}" }}
                {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" }}{%- endif %}
            {%- endfor %}
            {{- "[/AVAILABLE_TOOLS]" }}
        {%- endif %}
        {%- if loop.last and system_message is defined %}
            {{- "[INST] " + system_message + "\\n\\n" + message["content"] + "[/INST]" }}
        {%- else %}
            {{- "[INST] " + message["content"] + "[/INST]" }}
        {%- endif %}
    {%- elif message.tool_calls is defined and message.tool_calls is not none %}
        {{- "[TOOL_CALLS] [" }}
        {%- for tool_call in message.tool_calls %}
            {%- set out = tool_call.function|tojson %}
            {{- out[:-1] }}
            {%- if not tool_call.id is defined or tool_call.id|length != 9 %}
                {{- raise_exception("Tool call IDs should be alphanumeric strings with length 9!") }}
            {%- endif %}
            {{- ', "id": "' + tool_call.id + '"}' }}
            {%- if not loop.last %}{{- ", " }}{%- else %}{{- "]" + eos_token }}{%- endif %}
        {%- endfor %}
    {%- elif message["role"] == "assistant" %}
        {{- " " + message["content"]|trim + eos_token}}
    {%- elif message["role"] == "tool_results" or message["role"] == "tool" %}
        {%- if message.content is defined and message.content.content is defined %}
            {%- set content = message.content.content %}
        {%- else %}
            {%- set content = message.content %}
        {%- endif %}
        {{- '[TOOL_RESULTS] {"content": ' + content|string + ", " }}
        {{- '"call_id": "' + message.tool_call_id + '"}[/TOOL_RESULTS]' }}
    {%- else %}
        {{- raise_exception("Only user and assistant roles are supported!") }}
    {%- endif %}
{%- endfor %}
"""
MACROS = """{%- macro type_of(spec, level=0) -%}
    {%- if spec.type is string -%}{{ spec.type }}
    {%- elif spec.type is iterable -%}{{ spec.type | join(' | ') }}
    {%- else -%}any{%- endif -%}
    {%- if spec.enum -%} in {{ spec.enum | map('string') | join('/') }}{%- endif -%}
    {{- '!' * level }}
{%- endmacro -%}
{%- macro render(tool) %}
{% set f = tool.function %}
// {{ f.description }}
type {{ f.name }} = (
{%- for name, spec in f.parameters.properties.items() %}
  {{ name }}{{ '' if name in f.parameters.required else '?' }}: {{ type_of(spec, level=loop.index) }}{{ ',' if not loop.last }}
{%- endfor %}
) => any;
{% endmacro -%}
{%- for tool in tools %}{{ render(tool) }}{% endfor -%}
"""

FAMILIES = {"chatml": CHATML, "llama3": LLAMA3, "qwen": QWEN, "gemma": GEMMA, "mistral": MISTRAL,
            "macros": MACROS}
INPUTS = {
    "talk": dict(messages=TALK),
    "one": dict(messages=[USER], add_generation_prompt=False),
    "parts": dict(messages=PARTS),
    "tools": dict(messages=TALK[:2], tools=TOOLS),
    "calls": dict(messages=CALLS, tools=TOOLS),
    "think": dict(messages=THINK, enable_thinking=False),
    "twice": dict(messages=[USER, USER]),
    "empty": dict(messages=[]),
}

# Small ones: each line a construct.
EXPRESSIONS = r"""
{{ 1 + 2 * 3 - 4 }} {{ 7 // 2 }} {{ -7 // 2 }} {{ 7 % 3 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 10 }} {{ 2 ** -1 }}
{{ 1.5 + 1 }} {{ 1e3 }} {{ 1e16 }} {{ 1e15 }} {{ 0.1 + 0.2 }} {{ 1e-5 }} {{ 0.0001 }} {{ 3.0 }} {{ -0.5 }} {{ 10 / 5 }}
{{ true }} {{ false }} {{ none }} {{ True and None }} {{ 0 or 'x' }} {{ not 1 }} {{ '' or [] }}
{{ 'a' ~ 1 ~ none ~ 2.5 ~ true }} {{ 'ab' * 3 }} {{ [1, 2] * 2 }} {{ [1] + [2] }} {{ (1, 2) }} {{ (1,) }} {{ () }}
{{ 1 < 2 < 3 }} {{ 3 > 2 > 2 }} {{ 1 == 1.0 }} {{ 'a' < 'b' }} {{ true == 1 }} {{ [1, 2] == [1, 2] }} {{ 1 != 2 }}
{{ 'b' in 'abc' }} {{ 'x' not in ['x', 'y'] }} {{ 'k' in {'k': 1} }} {{ 2 in (1, 2) }} {{ not 2 in [1] }}
{{ 'yes' if 1 else 'no' }} {{ 'yes' if 0 }} {{ 'a' if 0 else 'b' if 0 else 'c' }}
{{ {'a': 1, 'b': [true, none, 'x', 1.5]} }} {{ {'it''s': "q\"uote"} }} {{ ["a'b", 'a"b', 'a\nb', 'ü', '\x00'] }}
{{ 'abcdef'[1:3] }} {{ 'abcdef'[::-1] }} {{ 'abcdef'[-2:] }} {{ 'abcdef'[:-1] }} {{ 'äöüß'[1:3] }} {{ 'abcdef'[::2] }} {{ 'abcdef'[4:1:-1] }}
{{ [1, 2, 3, 4][1:] }} {{ [1, 2, 3, 4][::-1] }} {{ [1, 2, 3][-1] }} {{ 'abc'[0] }} {{ 'abc'[-1] }} {{ [1, 2, 3][5] is defined }}
{{ '  x '.strip() }}|{{ 'xxaxx'.strip('x') }}|{{ 'abcb'.rstrip('cb') }}|{{ '  x'.lstrip() }}|{{ ' a  b '.split() }}|{{ 'a,b,,c'.split(',') }}|{{ 'a,b,c'.split(',', 1) }}
{{ 'a,b,c'.rsplit(',', 1) }} {{ 'a\nb\n'.splitlines() }} {{ 'abc'.upper() }} {{ 'ABC'.lower() }} {{ "it's a dog-house".title() }} {{ 'hELLO wORLD'.capitalize() }}
{{ 'abc'.startswith('ab') }} {{ 'abc'.endswith(('x', 'c')) }} {{ 'aXbX'.replace('X', 'yy') }} {{ 'aXbX'.replace('X', '', 1) }} {{ 'abcabc'.find('ca') }} {{ 'abc'.find('z') }} {{ 'aaa'.count('a') }}
{{ ', '.join(['a', 'b']) }} {{ 'prefix-x'.removeprefix('prefix-') }} {{ '12'.isdigit() }} {{ ''.isdigit() }} {{ 'äbc'.upper() }} {{ 'straße'.upper() }}
{{ ' x ' | trim }}|{{ 'xax' | trim('x') }}|{{ 'abc' | upper | lower | title }}|{{ 'hello WORLD-foo (bar' | title }}|{{ 'hELLO' | capitalize }}
{{ [1, 2, 3] | length }} {{ 'äöü' | count }} {{ {'a': 1} | length }} {{ [1, 2] | join('-') }} {{ 'abc' | join('.') }} {{ [] | join }} {{ [{'x': 1}, {'x': 2}] | join('+', attribute='x') }}
{{ missing | default('d') }} {{ '' | default('d') }} {{ '' | default('d', true) }} {{ none | default('d') }} {{ missing | d }}
{{ [3, 1, 2] | sort }} {{ ['b', 'A', 'c'] | sort }} {{ ['b', 'A', 'c'] | sort(case_sensitive=true) }} {{ [1, 3, 2] | sort(reverse=true) }} {{ [{'k': 2}, {'k': 1}] | sort(attribute='k') }}
{{ ['a', 'A', 'b', 'a'] | unique | list }} {{ [1, 2, 3] | reverse | list }} {{ 'abc' | reverse }} {{ [1, 2, 3] | first }} {{ [1, 2, 3] | last }} {{ 'abc' | first }} {{ 'abc' | list }}
{{ {'b': 1, 'A': 2, 'c': 0} | dictsort }} {{ {'b': 1, 'a': 2} | dictsort(by='value') }} {{ {'b': 1, 'a': 2} | items | list }} {{ {'b': 1} | list }}
{{ [1, 2, 3, 4] | select('odd') | list }} {{ [1, 2, 3, 4] | reject('divisibleby', 2) | list }} {{ [0, 1, '', 'x'] | select | list }} {{ ['a', 'b'] | map('upper') | join }}
{{ [{'r': 'u', 'n': 1}, {'r': 's', 'n': 2}] | selectattr('r', 'equalto', 'u') | map(attribute='n') | list }} {{ [{'r': 1}, {'q': 2}] | selectattr('r') | list }} {{ [{'r': 1}, {'q': 2}] | rejectattr('r', 'defined') | list }} {{ [{'r': 1}, {}] | map(attribute='r', default=9) | list }}
{{ '42' | int }} {{ 'x' | int }} {{ 'x' | int(-1) }} {{ '1.9' | int }} {{ 3.99 | int }} {{ 'ff' | int(base=16) }} {{ '2.5' | float }} {{ 'x' | float }} {{ 3 | float }} {{ -3 | abs }} {{ 2.5 | round }} {{ 2.567 | round(2) }} {{ 2.1 | round(0, 'ceil') }}
{{ 42 | string ~ 'x' }} {{ '<a href="x">&\'</a>' | escape }} {{ '<b>' | e }} {{ '<b>' | safe }} {{ 'a-b' | replace('-', '+') }} {{ [1, 2, 3] | sum }} {{ [1, 5, 3] | max }} {{ [4, 2] | min }}
{{ 'a\nb\n\nc' | indent }}|{{ 'a\nb' | indent(2, true) }}|{{ 'a\n\nb' | indent(1, blank=true) }}|{{ 'a\nb\n' | indent('> ') }}|
{{ {'a': [1, 2.5, true, none, 'x"\n\\/é<>&\''], 'b': {}, 'c': []} | tojson }} {{ 'ü' | tojson(ensure_ascii=true) }} {{ '😀' | tojson(ensure_ascii=true) }} {{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }} {{ [1, 2] | tojson(separators=(',', ':')) }}
{{ {'a': [1, {'b': 2}], 'c': {}, 'd': []} | tojson(indent=2) }}
{{ missing is defined }} {{ missing is undefined }} {{ none is none }} {{ 'x' is string }} {{ {} is mapping }} {{ [] is sequence }} {{ 'x' is iterable }} {{ 1 is number }} {{ true is boolean }} {{ 1 is boolean }} {{ true is number }} {{ 1 is integer }} {{ 1.0 is float }} {{ true is true }} {{ 1 is true }} {{ false is false }}
{{ 3 is odd }} {{ 4 is even }} {{ 4 is divisibleby 2 }} {{ 'a' is in ['a'] }} {{ 1 is eq 1 }} {{ 1 is ne(2) }} {{ 1 is not none }} {{ 'x' is not string }} {{ 'A' is upper }} {{ 'a' is lower }} {{ 2 is gt 1 }} {{ 1 is lt 2 }} {{ range is callable }}
{{ {'a': 1}.a }} {{ {'a': 1}['a'] }} {{ {'a': 1}.get('a') }} {{ {'a': 1}.get('z') }} {{ {'a': 1}.get('z', 5) }} {{ {'a': 1, 'b': 2}.keys() | list }} {{ {'a': 1, 'b': 2}.values() | list }} {{ {'a': 1}.items() | list }} {{ {'a': 1}.z is defined }}
{{ range(5) | list }} {{ range(1, 10, 3) | list }} {{ range(5, 0, -2) | list }} {{ range(0) | list }} {{ dict(a=1, b='x') }} {{ dict({'q': 1}, r=2) }}
{% for i in [1, 2, 3] %}{{ loop.index }}{{ loop.index0 }}{{ loop.revindex }}{{ loop.revindex0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }}{{ loop.previtem }}{{ loop.nextitem }}{{ loop.cycle('a', 'b') }};{% endfor %}
{% for i in [] %}x{% else %}empty{% endfor %} {% for a, b in [(1, 2), [3, 4]] %}{{ a }}-{{ b }} {% endfor %} {% for k in {'x': 1, 'y': 2} %}{{ k }}{% endfor %} {% for c in 'äb' %}<{{ c }}>{% endfor %} {% for k, v in {'x': 1}.items() %}{{ k }}={{ v }}{% endfor %}
{% for i in range(10) if i % 2 %}{{ i }}/{{ loop.length }} {% endfor %} {% for i in range(10) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}
{% set x = 1 %}{% for i in [1, 2] %}{% set x = x + i %}{{ x }}{% endfor %}{{ x }} {% set ns = namespace(n=0, s='') %}{% for i in [1, 2, 3] %}{% set ns.n = ns.n + i %}{% set ns.s = ns.s ~ i %}{% endfor %}{{ ns.n }}{{ ns.s }}
{% set a, b = 1, 2 %}{{ a }}{{ b }} {% set t = (1, 2) %}{{ t }} {% set c %}  block {{ a }} {% endset %}[{{ c }}] {% set c | trim | upper %}  block {{ a }} {% endset %}[{{ c }}]
{% macro m(a, b='B', c=none) %}({{ a }},{{ b }},{{ c }}){% endmacro %}{{ m(1) }}{{ m(1, 2) }}{{ m(1, c=3) }}{{ m() }}{{ m(b=1, a=2) }} {{ m('x') | upper }}
{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(4) }} {% set g = 5 %}{% macro h() %}{{ g }}{% endmacro %}{{ h() }}
{% if 0 %}a{% elif 1 %}b{% else %}c{% endif %}{% if [] %}a{% else %}c{% endif %}{% if {'a': 1} and 'x' %}d{% endif %} {% with a = 1, b = 2 %}{{ a + b }}{% endwith %} {% filter upper %}abc {{ 'd' }}{% endfilter %}
{% raw %}{{ not }} {% this %}{% endraw %} {# a comment {{ 1 }} #}x{#- trimmed -#} y {{ "{{" }} {{ '}}' }} {{ {'a': {'b': 1}}['a']['b'] }} {{ '%}' }}
{% generation %}hi {{ 1 }}{% endgeneration %} {{ 'a' 'b' }} {{ "é\u00e9\x41\t|\q" }} {{ 1_000 }} {{ [1,2,] }} {{ {'a':1,} }} {{ (1) }} {{ -2 | abs }} {{ -(2) }} {{ +3 }} {{ 2 * -3 }}
{{ messages[0].content }} {{ messages[0]['nope'] }} {{ messages | length }} {{ messages[0] }} {{ messages[-1].role }} {{ tools }} {{ bos_token }}{{ eos_token }} {{ add_generation_prompt }}
{{ (messages | map(attribute='role') | list)[1] }} {{ messages | selectattr('role', 'in', ['user', 'system']) | list | length }} {{ messages[1:] | length }} {{ messages | map(attribute='content') | map('trim') | join('|') }} {{ messages | first | tojson }}
{% for m in messages %}{% if not loop.first %}, {% endif %}{{ m.role[0] | upper }}{{ m.role[1:] }}{% endfor %} {{ messages[0].content[0:4] ~ '...' }} {{ 'x' if messages[0].role == 'system' and messages[0].content is not none else 'y' }}
{{ 1 if missing else 2 }} {{ missing ~ 'x' }} [{{ missing }}] {{ missing == none }} {{ missing | length }} {{ missing | list }} {% for x in missing %}x{% endfor %} {{ 'a' in missing }}
{{ 'a' + 'b' | upper }} {{ ('a' + 'b') | upper }} {{ '1' + 2 ~ 3 }} {{ 2 * 3 ~ 4 }} {{ not true == false }} {{ 1 + 1 == 2 and 2 in [2] }} {{ 'a' ~ 'b' == 'ab' }} {{ 10 - 2 - 3 }} {{ 2 ** 3 ** 2 }} {{ 7 - 2 * 3 % 4 }}
{{ 'x' is string and 1 is number }} {{ 'x' is string or false }} {{ (1 is number) == true }} {{ [] is not defined }} {{ 'abc' is string | string }} {{ 3 is divisibleby(3) and true }} {{ 'y' if 'x' is defined else 'n' }} {{ x is defined and x }}
{{ 0.1 }} {{ 100000000000000000000.0 }} {{ 123456789.123 }} {{ 1e100 }} {{ 1.0e-7 }} {{ 5e-324 }} {{ 9007199254740993 }} {{ 1 / 3 }} {{ [0.5, 1e20] }} {{ 1e22 | tojson }}
"""

WHITESPACE = {
    "lstrip": "a\n  {% if true %}\n    b\n  {% endif %}\nc\n",
    "print_keeps": "a\n  {{ 1 }}\nb\n\n",
    "minus": "a  \n {%- if true -%} \n b \n {%- endif -%} \n c",
    "plus": "a\n  {%+ if true +%}\nb\n  {%+ endif %}\nc",
    "comment": "a\n  {# x #}\nb {# y #}\nc\n{#- z -#}\n d",
    "two_tags": "  {% if true %}{% if true %}\nx\n  {% endif %}  {% endif %}\ny",
    "windows": "a\r\n{% if true %}\r\nb\r\n{% endif %}\r\nc\r\n",
    "raw": "a\n {% raw %}\n {{ x }}\n {% endraw %}\nb {%- raw -%}  x  {%- endraw -%}  c",
    "tabs": "\t{% set x = 1 %}\n\t{{ x }}\t{% if x %}\n\ty{% endif %}\n",
    "text_before": "a {% if true %}\n b\n {% endif %} c\n",
    "blank_lines": "{% if true %}\n\n\nx\n\n{% endif %}\n\ny",
    "inline_end": "x{% for i in [1, 2] %}\n- {{ i }}\n{% endfor %}\nend",
}

ERRORS = r"""
{{ raise_exception('no ' ~ 'way') }}
{{ missing.attribute }}
{{ 'a' + 1 }}
{{ none + 'x' }}
{{ 1 / 0 }}
{{ missing() }}
{{ [1, 2] < 3 }}
{{ messages[0].content.nope() }}
{% for a, b in [1] %}{% endfor %}
{{ 5 | join }}
{{ 1 in 2 }}
{{ missing[0] }}
{{ -'x' }}
{{ 'a' | unknown_filter }}
{{ 1 is unknown_test }}
{% unknown_tag %}
{% if %}{% endif %}
{% if 1 %}
{{ 1
{{ 'abc }}
{% endif %}
{{ (1 }}
{{ a b }}
{% for x %}{% endfor %}
{{ 1 + }}
{# open
{% raw %} open
{% set ns.x = 1 %}
{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}
{% break %}
"""

MUTABLE = r"""
{% set l = [1] %}{% set _ = l.append(2) %}{{ l }}{{ _ }} {% set ns = namespace(l=[]) %}{% for i in [1, 2] %}{% set _ = ns.l.append(i) %}{% endfor %}{{ ns.l }}
{% set l = [1, 2, 3] %}{{ l.pop() }}{{ l.pop(0) }}{{ l }} {% set _ = l.extend([5, 6]) %}{% set _ = l.insert(0, 9) %}{{ l }} {% set d = {'a': 1} %}{% set _ = d.update({'b': 2}) %}{{ d }}
{% set l = [] %}{% for i in range(3) %}{% set _ = l.append(i) %}{% endfor %}{{ l }} {% if l.append(7) %}{% endif %}{{ l }}
"""


def cases():
    for family, template in FAMILIES.items():
        for name, given in INPUTS.items():
            yield f"{family}/{name}", template, given, False
    plain = dict(messages=TALK)
    for kind, text, mutable in (("expression", EXPRESSIONS, False), ("error", ERRORS, False),
                                ("mutable", MUTABLE, True)):
        for i, line in enumerate(text.strip("\n").split("\n")):
            yield f"{kind}/{i + 1}", line, plain, mutable
    for name, template in WHITESPACE.items():
        yield f"whitespace/{name}", template, plain, False


def main():
    out = []
    for name, template, given, mutable in cases():
        variables = dict(tools=None, documents=None, add_generation_prompt=True, bos_token="<s>",
                         eos_token="</s>")
        variables.update(given)
        case = {"name": name, "template": template, "input": variables}
        try:
            case["expected"] = environment(mutable).from_string(template).render(**variables)
        except Exception as error:  # whatever Python says, ours must be an error too
            case["error"] = f"{type(error).__name__}: {error}"
        out.append(case)
    path = pathlib.Path(__file__).with_name("chat_templates.json")
    path.write_text(json.dumps(out, ensure_ascii=False, indent=1) + "\n")
    failed = [(c["name"], c["error"]) for c in out if "error" in c]
    print(len(out), "cases,", len(failed), "of them errors")
    for name, error in failed:
        print(" ", name, error)


if __name__ == "__main__":
    main()
