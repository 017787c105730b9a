# SPDX-License-Identifier: Apache-2.0
"""A closed-loop load: n clients, each sends its next streaming request when the last one ended.

The same client for every server: /v1/completions with token ids as the prompt, so that both sides
get exactly the same number of tokens in, and `stream_options.include_usage`, so that tokens out are
counted by the server and checked against what the client saw arrive.
"""

import http.client
import json
import threading
import time

REQUEST_LIMIT_S = 600


def stream_one(port, model, prompt, max_tokens):
    """(seconds to the first text, seconds in all, tokens out, token events seen)."""
    began = time.monotonic()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=REQUEST_LIMIT_S)
    body = {"model": model, "prompt": prompt, "max_tokens": max_tokens, "temperature": 0, "stream": True,
            "stream_options": {"include_usage": True}, "ignore_eos": True}
    first, usage, events = None, None, 0
    try:
        connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {response.read(300)!r}")
        for line in response:
            if not line.startswith(b"data: ") or line.startswith(b"data: [DONE]"):
                continue
            event = json.loads(line[6:])
            if event.get("usage"):
                usage = event["usage"]
            if event.get("choices"):
                events += 1
                if first is None:
                    first = time.monotonic() - began
    finally:
        connection.close()
    if usage is None or first is None:
        raise RuntimeError("the stream ended without text or usage")
    return first, time.monotonic() - began, usage["completion_tokens"], events


def closed_loop(port, model, prompts, clients, max_tokens):
    """Sends every prompt once from `clients` threads; figures over the whole run."""
    pending, lock, results, errors = list(reversed(prompts)), threading.Lock(), [], []

    def client():
        while True:
            with lock:
                if not pending:
                    return
                prompt = pending.pop()
            try:
                result = stream_one(port, model, prompt, max_tokens)
            except (OSError, RuntimeError, ValueError, http.client.HTTPException) as error:
                errors.append(str(error))
                return
            with lock:
                results.append(result)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    began = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - began
    if errors:
        raise RuntimeError(f"{len(errors)} clients failed; the first: {errors[0]}")
    tokens = sum(r[2] for r in results)
    firsts = sorted(r[0] for r in results)
    return {"requests": len(results), "seconds": seconds, "output_tokens": tokens,
            "output_tokens_per_s": tokens / seconds, "ttft_p50_s": firsts[len(firsts) // 2],
            "ttft_p99_s": firsts[min(len(firsts) - 1, int(len(firsts) * 0.99))]}
