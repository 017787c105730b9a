# SPDX-License-Identifier: Apache-2.0
"""The server around the answers: models, tokens, keys, queue, cancellation, concurrency, stop."""
import concurrent.futures
import hashlib
import http.client
import json
import signal
import threading
import time

import openai
import pytest

from conftest import Server, running

USER = [{"role": "user", "content": "Tell me a long story about a ship."}]


def test_models_lists_the_one_model(client, server):
    models = client.models.list().data
    assert [model.id for model in models] == [server.model]
    assert models[0].object == "model"
    assert client.models.retrieve(server.model).id == server.model
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("other")


def test_models_show_the_certificates_verdict(server):
    model = json.loads(server.request("GET", "/v1/models")[2])["data"][0]
    assert model["certificate"]["label"] in ("certified", "uncertified", "altered")
    assert model["certificate"]["details"]


@pytest.mark.parametrize("text", ["Hello, world", "  two  spaces\n\ttabs", "\u4f60\u597d \U0001F600",
                                  "def f(x):\n    return x ** 2", "<|im_start|>user<|im_end|>", ""])
def test_tokenize_and_back(server, text):
    status, body = server.post("/tokenize", {"content": text})
    assert status == 200
    assert server.post("/detokenize", {"tokens": body["tokens"]})[1] == {"content": text}


def test_tokenize_knows_special_tokens_only_where_asked(server):
    parsed = server.post("/tokenize", {"content": "<|im_end|>"})[1]["tokens"]
    plain = server.post("/tokenize", {"content": "<|im_end|>", "parse_special": False})[1]["tokens"]
    assert len(parsed) == 1
    assert len(plain) > 1


def test_tokenize_with_pieces(server):
    tokens = server.post("/tokenize", {"content": "Hello world", "with_pieces": True})[1]["tokens"]
    assert "".join(token["piece"] for token in tokens) == "Hello world"


def test_health_ready_and_metrics(server):
    assert json.loads(server.request("GET", "/health")[2]) == {"status": "ok"}
    assert server.request("GET", "/ready")[0] == 200
    status, headers, text = server.request("GET", "/metrics")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain")
    for name in ("spud_gateway_requests_total", "spud_gateway_prompt_tokens_total",
                 "spud_gateway_generated_tokens_total", "spud_engine_running_sequences",
                 "spud_engine_waiting_sequences", "spud_gateway_queue_seconds_bucket",
                 "spud_gateway_time_to_first_token_seconds_bucket",
                 "spud_gateway_time_per_output_token_seconds_bucket",
                 "spud_engine_step_seconds_bucket"):
        assert name in text, name


def test_metrics_count_what_usage_says(ask, server):
    before = (server.metric("spud_gateway_prompt_tokens_total"),
              server.metric("spud_gateway_generated_tokens_total"))
    usage = ask(max_tokens=6).usage
    assert server.metric("spud_gateway_prompt_tokens_total") - before[0] == usage.prompt_tokens
    assert server.metric("spud_gateway_generated_tokens_total") - before[1] == 6


def test_every_answer_has_a_request_id(client, server):
    raw = client.chat.completions.with_raw_response.create(
        model=server.model, messages=USER, max_tokens=1,
        extra_headers={"X-Client-Request-Id": "mine-1"})
    assert raw.headers["x-request-id"].startswith("req_")
    assert raw.headers["x-client-request-id"] == "mine-1"
    assert int(raw.headers["openai-processing-ms"]) >= 0
    assert raw.parse().choices
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model=server.model, messages=[])
    assert error.value.request_id.startswith("req_")


def test_concurrent_answers_equal_lonely_ones(ask):
    """An output does not depend on its neighbours in the batch."""
    prompts = [f"Count from {i} on." for i in range(12)]
    lonely = [ask(prompt).choices[0].message.content for prompt in prompts]
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        together = list(pool.map(lambda p: ask(p).choices[0].message.content, prompts))
    assert together == lonely


def test_streams_run_side_by_side(ask):
    def timed(prompt):
        stream = ask(prompt, stream=True, max_tokens=30, extra_body={"ignore_eos": True})
        times = [time.monotonic() for _ in stream]
        return times[0], times[-1]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        spans = list(pool.map(timed, ["one", "two", "three", "four"]))
    assert max(first for first, _ in spans) < min(last for _, last in spans)


def test_a_client_that_leaves_a_stream_stops_the_work(client, server):
    before = server.metric("spud_gateway_cancelled_requests_total")
    stream = client.chat.completions.create(model=server.model, messages=USER, stream=True,
                                            max_tokens=400, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()
    assert server.wait_for_idle()
    assert server.metric("spud_gateway_cancelled_requests_total") == before + 1


def test_a_client_that_leaves_while_waiting_stops_the_work(server):
    before = server.metric("spud_gateway_cancelled_requests_total")
    connection = http.client.HTTPConnection("127.0.0.1", server.port)
    connection.request("POST", "/v1/chat/completions",
                       json.dumps({"messages": USER, "max_tokens": 400, "ignore_eos": True}))
    deadline = time.monotonic() + 10
    while server.metric("spud_engine_running_sequences") == 0 and time.monotonic() < deadline:
        time.sleep(0.01)
    connection.close()
    assert server.wait_for_idle()
    assert server.metric("spud_gateway_cancelled_requests_total") == before + 1


def test_one_clients_cancel_leaves_others_alone(ask, client, server):
    expected = ask("Count to ten.", max_tokens=40).choices[0].message.content
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        other = pool.submit(ask, "Count to ten.", max_tokens=40)
        for _ in range(5):
            stream = client.chat.completions.create(model=server.model, messages=USER, stream=True,
                                                    max_tokens=100)
            next(iter(stream))
            stream.close()
        assert other.result().choices[0].message.content == expected


def test_a_full_queue_is_429_with_retry_after(small_server):
    """One runs, one waits, the third is refused."""
    client = small_server.client()

    def stream():
        return client.completions.create(model=small_server.model, prompt="x", stream=True,
                                         max_tokens=100, extra_body={"ignore_eos": True})
    running_one = stream()
    next(iter(running_one))
    waiting = threading.Thread(target=lambda: list(stream()))
    waiting.start()
    deadline = time.monotonic() + 10
    while small_server.metric("spud_engine_waiting_sequences") == 0 and time.monotonic() < deadline:
        time.sleep(0.005)
    with pytest.raises(openai.RateLimitError) as error:
        stream()
    assert error.value.response.headers["retry-after"] == "1"
    assert error.value.code == "queue_full"
    running_one.close()
    waiting.join()
    assert small_server.wait_for_idle()


def test_the_clients_own_retry_gets_through_a_full_queue(small_server):
    # Retries here too: the second choice may come while the first still waits in the queue of one.
    busy = small_server.client(max_retries=30).completions.create(
        model=small_server.model, prompt="x", n=2, max_tokens=16, stream=True,
        extra_body={"ignore_eos": True})
    next(iter(busy))
    patient = small_server.client(max_retries=30)
    done = threading.Thread(target=lambda: list(busy))
    done.start()
    assert patient.completions.create(model=small_server.model, prompt="y", max_tokens=1).choices
    done.join()


def test_keys_from_a_file(tmp_path):
    keys = tmp_path / "keys.txt"
    keys.write_text("# team keys\nalice " + hashlib.sha256(b"sk-alice").hexdigest() + "\n")
    with running("--api-keys", str(keys), "--alias", "named") as server:
        assert server.model == "named"
        assert server.client(api_key="sk-alice").models.list().data
        with pytest.raises(openai.AuthenticationError) as error:
            server.client(api_key="sk-bob").models.list()
        assert error.value.code == "invalid_api_key"
        assert server.request("GET", "/v1/models")[0] == 401
        assert server.request("GET", "/health")[0] == 200
        assert "sk-alice" not in "".join(server.log)


def test_sigterm_lets_running_answers_finish():
    with running("--ctx", "256") as server:
        stream = server.client().completions.create(
            model=server.model, prompt="x", stream=True, max_tokens=60, temperature=0,
            extra_body={"ignore_eos": True})
        iterator = iter(stream)
        next(iterator)
        server.process.send_signal(signal.SIGTERM)
        rest = list(iterator)
        assert rest[-1].choices[0].finish_reason == "length"
        assert server.process.wait(10) == 0


def test_sigterm_past_the_deadline_ends_streams_with_an_error():
    with running("--ctx", "2048", "--drain-s", "0") as server:
        stream = server.client().completions.create(
            model=server.model, prompt="x", stream=True, max_tokens=1900,
            extra_body={"ignore_eos": True})
        iterator = iter(stream)
        next(iterator)
        server.process.send_signal(signal.SIGTERM)
        with pytest.raises(openai.APIError):
            list(iterator)
        assert server.process.wait(10) == 0


def test_a_second_signal_stops_at_once():
    server = Server("--ctx", "2048")
    stream = server.client().completions.create(
        model=server.model, prompt="x", stream=True, max_tokens=1900,
        extra_body={"ignore_eos": True})
    next(iter(stream))
    server.process.send_signal(signal.SIGTERM)
    time.sleep(0.2)  # two signals at once would be one
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(5) == 0
    stream.close()


def test_a_bad_option_is_one_clear_sentence():
    with pytest.raises(RuntimeError) as error:
        Server("--ctx", "-5")
    assert "ctx" in str(error.value)
    with pytest.raises(RuntimeError) as error:
        Server("--api-keys", "/nonexistent/keys")
    assert "/nonexistent/keys" in str(error.value)


def test_options_come_from_file_environment_and_flags(tmp_path):
    config = tmp_path / "serve.yaml"
    config.write_text("ctx: 96\nalias: from-file\nmax_sequences: 2\n")
    with running("--config", str(config), "--ctx", "64",
                 env={"SPUD_SERVE_ALIAS": "from-environment"}) as server:
        assert server.model == "from-environment"
        assert server.context() == 64
