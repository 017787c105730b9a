# SPDX-License-Identifier: Apache-2.0
"""Chat answers that come as one document."""
import math

import pytest


def test_answer_has_the_shape_of_the_api(ask, server):
    answer = ask()
    assert answer.object == "chat.completion"
    assert answer.id.startswith("chatcmpl-")
    assert answer.model == server.model
    assert answer.created > 1_600_000_000
    assert answer.system_fingerprint.startswith("fp_")
    assert answer.choices[0].index == 0
    assert answer.choices[0].message.role == "assistant"
    assert answer.choices[0].message.content
    assert answer.choices[0].logprobs is None


def test_usage_adds_up(ask):
    usage = ask(max_tokens=5).usage
    assert usage.completion_tokens == 5
    assert usage.prompt_tokens > 5
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert 0 <= usage.prompt_tokens_details.cached_tokens < usage.prompt_tokens
    assert usage.completion_tokens_details.reasoning_tokens == 0


def test_prompt_tokens_equal_those_of_the_template(ask, server):
    short = ask("a", max_tokens=1).usage.prompt_tokens
    long = ask("a a a a a", max_tokens=1).usage.prompt_tokens
    tokens = lambda text: len(server.post("/tokenize", {"content": text})[1]["tokens"])
    assert long - short == tokens("a a a a a") - tokens("a")


def test_max_tokens_ends_with_length(ask):
    answer = ask(max_tokens=3)
    assert answer.choices[0].finish_reason == "length"
    assert answer.usage.completion_tokens == 3


def test_max_completion_tokens_is_the_same_limit(ask):
    answer = ask(max_tokens=None, max_completion_tokens=4)
    assert answer.usage.completion_tokens == 4


def test_without_a_limit_the_answer_ends_by_itself_or_fills_the_context(ask, server):
    answer = ask("Say yes.", max_tokens=None)
    assert answer.choices[0].finish_reason in ("stop", "length")
    if answer.choices[0].finish_reason == "length":
        assert answer.usage.total_tokens == server.context()


def test_greedy_answers_repeat(ask):
    assert ask().choices[0].message.content == ask().choices[0].message.content


def test_a_seed_repeats_a_sampled_answer(ask):
    once = ask(temperature=1, seed=7, max_tokens=24).choices[0].message.content
    again = ask(temperature=1, seed=7, max_tokens=24).choices[0].message.content
    assert once == again


def test_another_seed_gives_another_answer(ask):
    texts = {ask(temperature=1.5, seed=seed, max_tokens=24).choices[0].message.content
             for seed in range(4)}
    assert len(texts) > 1


def test_negative_and_large_seeds_are_taken(ask):
    for seed in (-1, 2**62, -(2**63)):
        assert ask(temperature=1, seed=seed, max_tokens=2).choices


def test_n_gives_choices_with_indices_and_counts_the_prompt_once(ask):
    one = ask(max_tokens=6)
    three = ask(n=3, max_tokens=6, temperature=1.5, seed=1)
    assert [choice.index for choice in three.choices] == [0, 1, 2]
    assert three.usage.prompt_tokens == one.usage.prompt_tokens
    assert len({choice.message.content for choice in three.choices}) > 1


def test_n_with_greedy_gives_equal_choices(ask):
    texts = {choice.message.content for choice in ask(n=2).choices}
    assert len(texts) == 1


def test_a_stop_string_ends_the_text_before_it(ask):
    full = ask(max_tokens=40).choices[0].message.content
    middle = len(full) // 2
    stop = full[middle:middle + 4]
    answer = ask(max_tokens=40, stop=stop)
    assert answer.choices[0].message.content == full[:full.index(stop)]
    assert answer.choices[0].finish_reason == "stop"


def test_stop_strings_work_at_every_place_across_token_borders(ask):
    full = ask(max_tokens=24).choices[0].message.content
    for begin in range(1, min(len(full) - 3, 40), 5):
        stop = full[begin:begin + 3]
        answer = ask(max_tokens=24, stop=[stop])
        assert answer.choices[0].message.content == full[:full.index(stop)], begin


def test_the_first_of_several_stop_strings_wins(ask):
    full = ask(max_tokens=40).choices[0].message.content
    early, late = full[5:8], full[-6:-3]
    answer = ask(max_tokens=40, stop=[late, early, "never in there"])
    assert answer.choices[0].message.content == full[:min(full.index(early), full.index(late))]


def test_a_stop_string_that_never_comes_changes_nothing(ask):
    assert ask(stop=["\u2603\u2603\u2603"]).choices[0].message.content == \
        ask().choices[0].message.content


def test_logprobs_have_tokens_bytes_and_alternatives(ask):
    answer = ask(logprobs=True, top_logprobs=3, max_tokens=8)
    content = answer.choices[0].logprobs.content
    assert len(content) == 8
    for entry in content:
        assert entry.logprob <= 0
        assert len(entry.top_logprobs) == 3
        values = [top.logprob for top in entry.top_logprobs]
        assert values == sorted(values, reverse=True)
        assert sum(math.exp(value) for value in values) <= 1.0001
        assert entry.logprob == pytest.approx(values[0], abs=1e-4)  # greedy takes the likeliest
    text = b"".join(bytes(entry.bytes) for entry in content).decode(errors="replace")
    assert text == answer.choices[0].message.content


def test_logprobs_without_alternatives(ask):
    content = ask(logprobs=True, max_tokens=3).choices[0].logprobs.content
    assert [entry.top_logprobs for entry in content] == [[], [], []]


def test_logprobs_do_not_change_the_text(ask):
    assert ask(logprobs=True, top_logprobs=20).choices[0].message.content == \
        ask().choices[0].message.content


def test_logprobs_are_of_the_models_own_distribution(ask):
    """Before temperature and filters: the first token's value is the same however it is sampled."""
    greedy = ask(logprobs=True, top_logprobs=5, max_tokens=1).choices[0].logprobs.content[0]
    sampled = ask(logprobs=True, top_logprobs=5, max_tokens=1, temperature=2, seed=3,
                  top_p=0.5).choices[0].logprobs.content[0]
    assert [top.logprob for top in greedy.top_logprobs] == \
        pytest.approx([top.logprob for top in sampled.top_logprobs], abs=1e-4)


def test_logit_bias_forbids_a_token(ask, server):
    first = ask(logprobs=True, max_tokens=1).choices[0].logprobs.content[0]
    ids = server.post("/tokenize", {"content": first.token})[1]["tokens"]
    if len(ids) != 1:
        pytest.skip("the first token's text is not one token by itself")
    other = ask(logprobs=True, max_tokens=1, logit_bias={str(ids[0]): -100})
    assert other.choices[0].logprobs.content[0].token != first.token


def test_logit_bias_forces_a_token(ask, server):
    token = server.post("/tokenize", {"content": "Z"})[1]["tokens"][0]
    answer = ask(max_tokens=3, logit_bias={str(token): 100})
    assert answer.choices[0].message.content == "ZZZ"


def test_a_system_message_matters(client, server):
    def chat(system):
        return client.chat.completions.create(
            model=server.model, temperature=0, max_tokens=24,
            messages=[{"role": "system", "content": system},
                      {"role": "user", "content": "Who are you?"}]).usage.prompt_tokens
    assert chat("You are a pirate who says arr a lot.") > chat("You are.")


def test_developer_is_another_name_for_system(client, server):
    def chat(role):
        return client.chat.completions.create(
            model=server.model, temperature=0, max_tokens=12,
            messages=[{"role": role, "content": "Be brief."},
                      {"role": "user", "content": "Hi"}]).choices[0].message.content
    assert chat("developer") == chat("system")


def test_content_may_be_text_parts(client, server, ask):
    parts = client.chat.completions.create(
        model=server.model, temperature=0, max_tokens=12,
        messages=[{"role": "user", "content": [{"type": "text", "text": "Tell me"},
                                               {"type": "text", "text": "a joke."}]}])
    assert parts.choices[0].message.content == \
        ask("Tell me\na joke.", max_tokens=12).choices[0].message.content


def test_a_conversation_with_history_is_taken(client, server):
    answer = client.chat.completions.create(
        model=server.model, temperature=0, max_tokens=8,
        messages=[{"role": "user", "content": "My name is Ada."},
                  {"role": "assistant", "content": "Hello Ada."},
                  {"role": "user", "content": "What is my name?"}])
    assert answer.choices[0].message.content is not None


def test_markers_in_user_content_are_plain_text(ask):
    """'<|im_end|>' from a user is several ordinary tokens, never the model's end marker."""
    plain = ask("x", max_tokens=1).usage.prompt_tokens
    marked = ask("x<|im_end|>", max_tokens=1).usage.prompt_tokens
    assert marked - plain > 2


def test_unicode_goes_in_and_out(ask):
    answer = ask("Say: gr\u00fc\u00df dich \u4f60\u597d \U0001F600", max_tokens=8)
    answer.choices[0].message.content.encode("utf-8")  # no lone surrogates
    assert answer.usage.prompt_tokens > 8


def test_penalties_change_the_text(ask):
    plain = ask("Repeat: la la la la", max_tokens=40).choices[0].message.content
    changed = ask("Repeat: la la la la", max_tokens=40, frequency_penalty=2,
                  presence_penalty=2).choices[0].message.content
    assert plain != changed


def test_extra_sampling_fields_are_taken(ask):
    answer = ask(temperature=1, extra_body={"top_k": 1, "min_p": 0.05, "repetition_penalty": 1.0})
    assert answer.choices[0].message.content == ask().choices[0].message.content  # top_k 1 = greedy


def test_top_p_zero_is_greedy(ask):
    assert ask(temperature=1, top_p=0).choices[0].message.content == \
        ask().choices[0].message.content


def test_unknown_and_harmless_fields_are_ignored(ask):
    answer = ask(user="someone", metadata={"a": "b"}, store=False,
                 extra_body={"whatever_this_is": [1, 2]})
    assert answer.choices[0].message.content
