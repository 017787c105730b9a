# SPDX-License-Identifier: Apache-2.0
"""Streams: order of chunks, sameness with whole answers, usage, unicode."""
import json

import openai
import pytest


def collect(stream):
    chunks = list(stream)
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    return chunks, text


def test_the_joined_stream_is_the_whole_answer(ask):
    chunks, text = collect(ask(stream=True, max_tokens=32))
    assert text == ask(max_tokens=32).choices[0].message.content
    assert len(chunks) > 3


def test_the_first_chunk_carries_the_role_and_only_the_first(ask):
    chunks, _ = collect(ask(stream=True))
    assert chunks[0].choices[0].delta.role == "assistant"
    assert all(chunk.choices[0].delta.role is None for chunk in chunks[1:])


def test_id_model_and_created_stay_the_same(ask, server):
    chunks, _ = collect(ask(stream=True))
    assert len({(chunk.id, chunk.created, chunk.model, chunk.system_fingerprint)
                for chunk in chunks}) == 1
    assert chunks[0].object == "chat.completion.chunk"
    assert chunks[0].model == server.model


def test_exactly_one_finish_reason_in_the_last_chunk(ask):
    chunks, _ = collect(ask(stream=True))
    reasons = [chunk.choices[0].finish_reason for chunk in chunks]
    assert reasons[-1] in ("stop", "length")
    assert set(reasons[:-1]) == {None}


def test_no_usage_unless_asked(ask):
    chunks, _ = collect(ask(stream=True))
    assert all(chunk.usage is None for chunk in chunks)


def test_include_usage_adds_one_chunk_with_empty_choices(ask):
    chunks, _ = collect(ask(stream=True, stream_options={"include_usage": True}, max_tokens=7))
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 7
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert chunks[-1].usage == ask(max_tokens=7).usage


def test_usage_is_null_on_the_other_chunks_and_done_comes_last(server):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 3, "stream": True,
            "stream_options": {"include_usage": True}}
    _, headers, text = server.request("POST", "/v1/chat/completions", body)
    assert headers["Content-Type"].startswith("text/event-stream")
    lines = [line for line in text.split("\n\n") if line]
    assert lines[-1] == "data: [DONE]"
    chunks = [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]
    assert all("usage" in chunk and chunk["usage"] is None for chunk in chunks[:-1])


def test_n_choices_are_told_apart_by_index(ask):
    texts, reasons = {}, {}
    for chunk in ask(stream=True, n=3, temperature=1, seed=11, max_tokens=12):
        choice = chunk.choices[0]
        texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
        if choice.finish_reason:
            reasons[choice.index] = choice.finish_reason
    whole = ask(n=3, temperature=1, seed=11, max_tokens=12)
    assert [texts[i] for i in range(3)] == [choice.message.content for choice in whole.choices]
    assert len(reasons) == 3


def test_logprobs_in_a_stream_are_those_of_the_whole_answer(ask):
    streamed = []
    for chunk in ask(stream=True, logprobs=True, top_logprobs=2, max_tokens=8):
        if chunk.choices[0].logprobs:
            streamed += chunk.choices[0].logprobs.content
    whole = ask(logprobs=True, top_logprobs=2, max_tokens=8).choices[0].logprobs.content
    assert [entry.token for entry in streamed] == [entry.token for entry in whole]
    assert [entry.logprob for entry in streamed] == \
        pytest.approx([entry.logprob for entry in whole], abs=1e-4)


def test_a_stop_string_never_shows_not_even_in_part(ask):
    full = ask(max_tokens=40).choices[0].message.content
    stop = full[12:18]
    _, text = collect(ask(stream=True, max_tokens=40, stop=stop))
    assert text == full[:full.index(stop)]


def test_text_held_back_for_a_stop_that_did_not_come_is_sent(ask):
    full = ask(max_tokens=20).choices[0].message.content
    almost = full[-3:] + "\u2603"
    _, text = collect(ask(stream=True, max_tokens=20, stop=almost))
    assert text == full


def test_every_chunk_is_whole_characters(ask):
    """Characters of several tokens are held back until they are complete."""
    prompt = "Repeat exactly: \U0001F600\U0001F680\U0001F9E1 \u4f60\u597d\u4e16\u754c \u00e9\u00e0\u00fc"
    chunks, text = collect(ask(prompt, stream=True, max_tokens=48))
    assert text == ask(prompt, max_tokens=48).choices[0].message.content
    for chunk in chunks:
        (chunk.choices[0].delta.content or "").encode("utf-8")


def test_completions_stream_too(complete):
    chunks = list(complete(stream=True, max_tokens=10))
    assert "".join(chunk.choices[0].text for chunk in chunks) == \
        complete(max_tokens=10).choices[0].text
    assert chunks[-1].choices[0].finish_reason in ("stop", "length")
    assert chunks[0].object == "text_completion"


def test_completions_stream_with_echo_and_usage(complete):
    chunks = list(complete(stream=True, echo=True, max_tokens=4,
                           stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].text for chunk in chunks if chunk.choices)
    assert text.startswith("The sea is")
    assert chunks[-1].usage.completion_tokens == 4


def test_several_prompts_stream_with_their_indices(complete):
    texts = {}
    for chunk in complete(["The sea is", "Water boils at"], stream=True, max_tokens=6):
        choice = chunk.choices[0]
        texts[choice.index] = texts.get(choice.index, "") + choice.text
    assert texts[1] == complete("Water boils at", max_tokens=6).choices[0].text


def test_an_error_before_the_first_token_is_a_plain_http_error(client, server):
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model=server.model, stream=True, temperature=9,
                                       messages=[{"role": "user", "content": "x"}])
    assert error.value.param == "temperature"


def test_the_async_client_streams_as_well(server):
    import asyncio

    async def run():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="x") as client:
            stream = await client.chat.completions.create(
                model=server.model, messages=[{"role": "user", "content": "Hi"}], stream=True,
                max_tokens=5, temperature=0)
            return [chunk async for chunk in stream]
    assert asyncio.run(run())[-1].choices[0].finish_reason in ("stop", "length")
