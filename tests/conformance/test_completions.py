# SPDX-License-Identifier: Apache-2.0
"""/v1/completions: text and token prompts, echo, log-probs of the prompt."""
import pytest


def tokens_of(server, text):
    return server.post("/tokenize", {"content": text, "add_special": True})[1]["tokens"]


def test_answer_has_the_shape_of_the_api(complete, server):
    answer = complete()
    assert answer.object == "text_completion"
    assert answer.id.startswith("cmpl-")
    assert answer.choices[0].text
    assert answer.usage.prompt_tokens == len(tokens_of(server, "The sea is"))


def test_sixteen_tokens_by_default(client, server):
    answer = client.completions.create(model=server.model, prompt="Once upon a time",
                                       temperature=0, extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 16
    assert answer.choices[0].finish_reason == "length"


def test_a_token_prompt_equals_its_text(complete, server):
    assert complete(tokens_of(server, "The sea is")).choices[0].text == \
        complete("The sea is").choices[0].text


def test_an_array_of_prompts_is_answered_in_order(complete):
    many = complete(["The sea is", "Water boils at", "One two three"])
    assert [choice.index for choice in many.choices] == [0, 1, 2]
    for choice, prompt in zip(many.choices, ["The sea is", "Water boils at", "One two three"]):
        assert choice.text == complete(prompt).choices[0].text
    assert many.usage.completion_tokens == 48


def test_an_array_of_token_arrays(complete, server):
    many = complete([tokens_of(server, "The sea is"), tokens_of(server, "Water boils at")])
    assert many.choices[1].text == complete("Water boils at").choices[0].text


def test_prompts_times_n(complete):
    answer = complete(["a", "b"], n=2, max_tokens=2)
    assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]


def test_echo_puts_the_prompt_in_front(complete):
    assert complete(echo=True).choices[0].text == "The sea is" + complete().choices[0].text


def test_echo_with_logprobs_covers_the_prompt(complete, server):
    answer = complete(echo=True, logprobs=1, max_tokens=2)
    logprobs = answer.choices[0].logprobs
    count = len(tokens_of(server, "The sea is")) + 2
    assert len(logprobs.tokens) == len(logprobs.token_logprobs) == count
    assert len(logprobs.text_offset) == count
    assert logprobs.token_logprobs[0] is None
    assert all(value <= 0 for value in logprobs.token_logprobs[1:])


def test_scoring_a_prompt_generates_nothing(client, server):
    """The way evaluation harnesses measure likelihoods."""
    answer = client.completions.create(model=server.model, prompt="The sea is blue.", max_tokens=0,
                                       echo=True, logprobs=1, temperature=0)
    assert answer.choices[0].text == "The sea is blue."
    assert answer.usage.completion_tokens == 0
    assert len(answer.choices[0].logprobs.tokens) == len(tokens_of(server, "The sea is blue."))


def test_prompt_logprobs_agree_with_generated_ones(complete, server):
    """What the model predicts for a token is the same whether it wrote it or read it."""
    written = complete("The sea is", max_tokens=4, logprobs=1)
    text = "The sea is" + written.choices[0].text
    prompt = tokens_of(server, text)
    if len(prompt) != len(tokens_of(server, "The sea is")) + 4:
        pytest.skip("the text tokenizes differently when read")
    read = complete(prompt, max_tokens=1, echo=True, logprobs=1)
    assert read.choices[0].logprobs.token_logprobs[-5:-1] == \
        pytest.approx(written.choices[0].logprobs.token_logprobs, abs=2e-3)


def test_logprobs_shape(complete, real_model):
    # A made-up model's likely tokens are parts of characters, all shown by the same replacement.
    logprobs = complete(logprobs=2, max_tokens=5).choices[0].logprobs
    assert len(logprobs.tokens) == 5
    assert logprobs.text_offset[0] == 0
    assert all(len(top) in (2, 3) for top in logprobs.top_logprobs)


def test_logprobs_zero_is_the_chosen_token_only(complete):
    logprobs = complete(logprobs=0, max_tokens=3).choices[0].logprobs
    assert all(len(top) == 1 for top in logprobs.top_logprobs)


def test_stop_and_seed(complete):
    full = complete(max_tokens=30).choices[0].text
    stop = full[8:11]
    answer = complete(max_tokens=30, stop=[stop])
    assert answer.choices[0].text == full[:full.index(stop)]
    one = complete(temperature=1, seed=5).choices[0].text
    assert one == complete(temperature=1, seed=5).choices[0].text


def test_best_of_equal_to_n_is_taken(complete):
    assert len(complete(n=2, best_of=2, max_tokens=2).choices) == 2


def test_special_tokens_can_be_given_as_markers(complete, server):
    """The raw endpoint: whoever writes the prompt writes the markers too."""
    tokens = server.post("/tokenize", {"content": "<|im_start|>user"})[1]["tokens"]
    answer = complete("<|im_start|>user", max_tokens=1)
    assert answer.usage.prompt_tokens == len(tokens)


def test_ignore_eos_fills_the_limit(complete):
    answer = complete("Bye.", max_tokens=64, extra_body={"ignore_eos": True})
    assert answer.usage.completion_tokens == 64
    assert answer.choices[0].finish_reason == "length"
