# SPDX-License-Identifier: Apache-2.0
"""Refusals: status, param, code, and no work done for them."""
import json

import openai
import pytest

USER = [{"role": "user", "content": "hi"}]

BAD_CHAT_FIELDS = [
    ({"temperature": -0.1}, "temperature"), ({"temperature": "warm"}, "temperature"),
    ({"top_p": 1.1}, "top_p"), ({"top_k": -5}, "top_k"), ({"n": 0}, "n"), ({"n": 1000}, "n"),
    ({"max_tokens": 0}, "max_tokens"), ({"max_tokens": "x"}, "max_tokens"),
    ({"max_completion_tokens": -1}, "max_completion_tokens"),
    ({"presence_penalty": 2.5}, "presence_penalty"),
    ({"frequency_penalty": []}, "frequency_penalty"),
    ({"stop": ["x"] * 17}, "stop"), ({"stop": 1}, "stop"), ({"stop": [""]}, "stop"),
    ({"logit_bias": {"word": 1}}, "logit_bias"), ({"logit_bias": {"1": 200}}, "logit_bias"),
    ({"seed": 1.5}, "seed"), ({"stream": "yes"}, "stream"),
    ({"stream_options": {"include_usage": True}}, "stream_options"),
    ({"top_logprobs": 2}, "top_logprobs"), ({"logprobs": True, "top_logprobs": 21}, "top_logprobs"),
    ({"tools": [{"type": "function", "function": {"name": "f"}}]}, "tools"),
    ({"functions": [{"name": "f"}]}, "functions"),
    ({"response_format": {"type": "json_object"}}, "response_format"),
    ({"modalities": ["audio"]}, "modalities"),
    ({"messages": []}, "messages"), ({"messages": "hi"}, "messages"),
    ({"messages": [{"role": "nobody", "content": "x"}]}, "messages[0].role"),
    ({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]},
     "messages[0].content[0].type"),
]


@pytest.mark.parametrize("fields,param", BAD_CHAT_FIELDS,
                         ids=[json.dumps(fields)[:40] for fields, _ in BAD_CHAT_FIELDS])
def test_a_bad_chat_field_is_named(server, fields, param):
    status, body = server.post("/v1/chat/completions", {"messages": USER, **fields})
    assert status == 400
    assert body["error"]["param"] == param
    assert body["error"]["type"] == "invalid_request_error"
    assert body["error"]["message"]


@pytest.mark.parametrize("fields,param", [
    ({}, "prompt"), ({"prompt": []}, "prompt"), ({"prompt": [-1]}, "prompt"),
    ({"prompt": [10**9]}, "prompt"), ({"prompt": "x", "suffix": "y"}, "suffix"),
    ({"prompt": "x", "best_of": 3}, "best_of"), ({"prompt": "x", "logprobs": 50}, "logprobs")])
def test_a_bad_completion_field_is_named(server, fields, param):
    status, body = server.post("/v1/completions", fields)
    assert (status, body["error"]["param"]) == (400, param)


def test_an_unknown_model_is_404(client):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="gpt-nothing", messages=USER)
    assert error.value.code == "model_not_found"
    assert error.value.param == "model"


def test_an_unknown_path_is_404_and_a_wrong_method_405(server):
    assert server.request("POST", "/v1/nothing", "{}")[0] == 404
    status, headers, _ = server.request("GET", "/v1/chat/completions")
    assert status == 405
    assert headers["Allow"] == "POST"


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{\"messages\": }", "\x00", "{} {}",
                                  "[" * 10_000, "{\"a\":" * 5_000])
def test_text_that_is_no_json_object_is_400(server, text):
    status, _, body = server.request("POST", "/v1/chat/completions", text)
    assert status == 400
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


def test_embeddings_are_refused_clearly(client, server):
    with pytest.raises(openai.BadRequestError) as error:
        client.embeddings.create(model=server.model, input="x")
    assert "not supported" in str(error.value)


def test_a_body_beyond_the_limit_is_413(server):
    assert server.request("POST", "/v1/chat/completions", "x" * (9 << 20))[0] == 413


def test_refusals_leave_no_work_behind(server):
    before = server.metric("spud_gateway_prompt_tokens_total")
    for fields, _ in BAD_CHAT_FIELDS:
        server.post("/v1/chat/completions", {"messages": USER, **fields})
    assert server.metric("spud_gateway_prompt_tokens_total") == before


def test_the_context_is_measured_to_the_token(small_server):
    client, context = small_server.client(), small_server.context()
    assert context == 128

    def complete(prompt_tokens, max_tokens):
        return client.completions.create(model=small_server.model, prompt=[65] * prompt_tokens,
                                         max_tokens=max_tokens, temperature=0,
                                         extra_body={"ignore_eos": True})
    assert complete(context - 1, 1).usage.total_tokens == context
    for prompt_tokens, max_tokens in ((context, 1), (context + 1, 1), (context - 1, 2)):
        with pytest.raises(openai.BadRequestError) as error:
            complete(prompt_tokens, max_tokens)
        assert error.value.code == "context_length_exceeded"
    assert complete(context - 8, 8).usage.completion_tokens == 8


def test_a_chat_beyond_the_context_is_refused(small_server):
    with pytest.raises(openai.BadRequestError) as error:
        small_server.client().chat.completions.create(
            model=small_server.model, messages=[{"role": "user", "content": "word " * 400}])
    assert error.value.code == "context_length_exceeded"
    assert error.value.param == "messages"
