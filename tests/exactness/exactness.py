# SPDX-License-Identifier: Apache-2.0
"""Text, tokens and log-probabilities of each request, bit by bit, whatever the server is doing.

The reference server runs one sequence on one thread without a prefix cache. The others get the same
requests all at once, twice (the second time the prefix cache knows them), among clients that leave
in the middle. Log-probabilities are compared as printed, which is exact: the shortest text that
reads back as the same number. Standard library only."""
import argparse
import json
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from spud_server import Server, body_of, post, read_all, reset, status_of  # noqa: E402

CONTEXT = 640
COMMON = ["--ctx", str(CONTEXT), "--log-level", "warn"]
ALONE = ["--max-sequences", "1", "--threads", "1", "--no-prefix-cache"]
# What differs from the reference, by name.
SERVERS = {
    "batched": ["--max-sequences", "24", "--threads", "2"],
    "no prefix cache": ["--max-sequences", "24", "--no-prefix-cache"],
    "small chunks": ["--max-sequences", "7", "--threads", "1", "--step-rows", "16"],
    "few pages": ["--max-sequences", "24", "--kv-memory", "KV_OF_TWO"],
    "few pages, no prefix cache": ["--max-sequences", "24", "--kv-memory", "KV_OF_TWO",
                                   "--no-prefix-cache"],
}
# Whose pages run out in the middle of answers. A newcomer is let in when all that run can still grow
# by two pages (64 tokens), so some answers must be longer than that.
PREEMPTING = ("few pages", "few pages, no prefix cache")
LONG_ANSWER = 200
WORDS = ("river stone lamp paper seven quiet engine market winter copper little answer bridge yellow "
         "garden thunder pencil orange ladder window").split()
ATTEMPTS = 200  # a full queue says 429: come back


def make_requests(count, seed):
    """Short and long prompts, half of them behind a shared beginning; every way to sample."""
    rng = random.Random(seed)
    text = lambda words: " ".join(rng.choice(WORDS) for _ in range(words))  # noqa: E731
    shared = text(90)
    requests = []
    for i in range(count):
        prompt = (shared + ". " if i % 2 else "") + text(rng.choice([3, 12, 40, 120]))
        requests.append({
            "prompt": prompt, "seed": i, "logprobs": 5,
            "max_tokens": LONG_ANSWER if i % 3 == 0 else rng.choice([1, 5, 24, 48]),
            "ignore_eos": True, "temperature": rng.choice([0, 0, 0.7, 1.3]),
            "top_p": rng.choice([1, 0.9]), "top_k": rng.choice([0, 40]),
            "frequency_penalty": rng.choice([0, 0, 0.5])})
    return requests


def ask(server, request):
    """The choices of the answer as text, which is what must be equal."""
    for _ in range(ATTEMPTS):
        answer = read_all(server.send(post(request, "/v1/completions"), timeout_s=300))
        if status_of(answer) != 429:
            break
        time.sleep(0.1)
    if status_of(answer) != 200:
        raise RuntimeError(f"{answer[:300]!r}")
    return json.dumps(json.loads(body_of(answer))["choices"], sort_keys=True)


class Leavers(threading.Thread):
    """Clients that start a stream and leave it."""

    def __init__(self, server, requests):
        super().__init__(daemon=True)
        self.server, self.requests, self.stop = server, requests, threading.Event()

    def run(self):
        rng = random.Random(7)
        while not self.stop.wait(0.05):
            request = {**rng.choice(self.requests), "stream": True, "max_tokens": 60}
            s = self.server.send(post(request, "/v1/completions"))
            s.settimeout(rng.random() * 0.3 + 0.01)
            try:
                s.recv(rng.randint(1, 4000))
            except OSError:
                pass
            reset(s)


def compare(server, requests, expected):
    """How many answers differ, over two rounds under load, and the first that does."""
    leavers = Leavers(server, requests)
    leavers.start()
    wrong, first = 0, ""
    for round_seed in (1, 2):
        order = list(range(len(requests)))
        random.Random(round_seed).shuffle(order)
        with ThreadPoolExecutor(16) as pool:
            answers = list(pool.map(lambda i: ask(server, requests[i]), order))
        for i, answer in zip(order, answers):
            if answer != expected[i]:
                wrong += 1
                first = first or f"request {i} ({requests[i]}):\n  {expected[i][:400]}\n  {answer[:400]}"
    leavers.stop.set()
    leavers.join(20)
    return wrong, first


def page_bytes(server):
    """Of the prompts that were just asked."""
    return server.metric("spud_engine_prefix_cache_bytes") / server.metric(
        "spud_engine_prefix_cache_pages")


def run_isa(isa, requests):
    flags = [*COMMON, *(["--isa", isa] if isa else [])]
    reference = Server([*flags, *ALONE])
    expected = [ask(reference, request) for request in requests]
    again = [ask(reference, request) for request in requests[:5]]
    reference.stop()
    caching = Server([*flags, "--max-sequences", "1"])
    ask(caching, max(requests, key=lambda r: len(r["prompt"])))
    two_contexts = int(2.2 * CONTEXT / 32 * page_bytes(caching))
    caching.stop()
    passed, failed = 0, 0
    for name, extra in {"the reference itself": None, **SERVERS}.items():
        if extra is None:
            wrong, first = sum(a != b for a, b in zip(again, expected)), ""
        else:
            server = Server([*flags, *[str(two_contexts) if f == "KV_OF_TWO" else f for f in extra]])
            wrong, first = compare(server, requests, expected)
            idle = server.wait_for_idle()
            cached = server.metric("spud_engine_prefix_cache_hit_tokens_total")
            preempted = server.metric("spud_engine_preemptions_total")
            status = server.stop()
            if not idle or status != 0:
                wrong, first = wrong + 1, f"work left: {not idle}, exit status {status}"
            if name in PREEMPTING and preempted == 0:
                wrong, first = wrong + 1, first or "nobody was preempted: it proved nothing"
            name += f" (cached tokens {cached:.0f}, preemptions {preempted:.0f})"
        print(f"{'FAIL' if wrong else 'ok  '} {isa or 'best isa'}, {name}: {wrong} of "
              f"{len(requests)} requests differ", flush=True)
        if first:
            print(first)
        passed, failed = passed + (not wrong), failed + bool(wrong)
    return passed, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=32)
    parser.add_argument("--isa", nargs="+", default=[""], help="each against itself")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    requests = make_requests(options.requests, options.seed)
    results = [run_isa(isa, requests) for isa in options.isa]
    print(f"{sum(r[0] for r in results)} passed, {sum(r[1] for r in results)} failed")
    return any(r[1] for r in results)


sys.exit(main())
