# SPDX-License-Identifier: Apache-2.0
"""Full load with disconnect storms, prompts that do not fit, full queues and too few pages. Sampled
all the while: resident memory and swap, threads, descriptors. At the end nothing may be left over:
no sequence, no page, no thread, no descriptor, no slope. Standard library only."""
import argparse
import json
import os
import random
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from spud_server import Server, body_of, post, read_all, reset, status_of  # noqa: E402

FLAGS = ["--ctx", "512", "--max-sequences", "12", "--max-queue", "24", "--log-level", "warn",
         "--kv-memory", "40000000"]
MAX_SLOPE_MIB_PER_HOUR = 20  # judged from ten minutes on; before that the growth is
MAX_GROWTH_MIB = 24


class Client(threading.Thread):
    """Calls `once` with its own random numbers until told to stop; keeps what went wrong."""

    def __init__(self, once, seed):
        super().__init__(daemon=True)
        self.once, self.rng = once, random.Random(seed)
        self.stop, self.problems, self.done = threading.Event(), [], 0

    def run(self):
        while not self.stop.is_set():
            try:
                problem = self.once(self.rng)
            except OSError as error:
                problem = repr(error)
            if problem and len(self.problems) < 5:
                self.problems.append(problem)
            self.done += 1


def random_prompt(rng, longest):
    return [rng.randrange(100, 1000) for _ in range(rng.randint(1, longest))]


def worker(server):
    def once(rng):
        body = {"prompt": random_prompt(rng, 300), "max_tokens": rng.randint(1, 150),
                "ignore_eos": True, "stream": rng.random() < 0.5, "seed": rng.randrange(1 << 30),
                "logprobs": rng.choice([None, 0, 5]), "n": rng.choice([1, 1, 1, 3])}
        answer = read_all(server.send(post(body, "/v1/completions"), timeout_s=120))
        return None if status_of(answer) in (200, 429) else f"worker: {answer[:200]!r}"
    return once


def storm(server):
    """Twenty at once, all gone a moment later."""
    def once(rng):
        sockets = [server.send(post({"prompt": random_prompt(rng, 400), "max_tokens": 100,
                                     "stream": True, "ignore_eos": True}, "/v1/completions"))
                   for _ in range(20)]
        time.sleep(rng.random() * 0.5)
        for s in sockets:
            reset(s) if rng.random() < 0.5 else s.close()
        time.sleep(1)
    return once


def misfit(server):
    """Prompts that do not fit are refused before any work."""
    def once(rng):
        body = {"prompt": random_prompt(rng, 100) * 8 + [100] * 600, "max_tokens": 5}
        status = status_of(read_all(server.send(post(body, "/v1/completions"))))
        time.sleep(0.2)
        return None if status == 400 else f"a prompt that does not fit got {status}"
    return once


def neighbour(server, body, expected):
    """Always the same question: always the same answer."""
    def once(_):
        answer = read_all(server.send(post(body, "/v1/completions"), timeout_s=120))
        time.sleep(0.2)
        if status_of(answer) == 429:
            return None
        text = json.dumps(json.loads(body_of(answer))["choices"]) if status_of(answer) == 200 else ""
        return None if text == expected else f"neighbour: {answer[:200]!r}"
    return once


def open_files(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def memory_mib(server):
    return (server.status_field("RssAnon") + server.status_field("VmSwap")) / 1024


def slope_per_hour(samples):
    """MiB an hour, least squares over the second half: the first fills pages and caches."""
    half = samples[len(samples) // 2:]
    if len(half) < 3:
        return 0.0
    times, values = zip(*half)
    return statistics.linear_regression(times, values).slope * 3600


def soak(server, clients, seconds):
    samples, began = [], time.monotonic()
    for client in clients:
        client.start()
    while (at := time.monotonic() - began) < seconds and server.process.poll() is None:
        samples.append((at, memory_mib(server)))
        if len(samples) % 60 == 0:
            print(f"  {at:6.0f} s: {samples[-1][1]:.1f} MiB, {server.status_field('Threads')} "
                  f"threads, {open_files(server)} files", flush=True)
        time.sleep(1)
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join(150)
    return samples


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    server = Server(FLAGS)
    body = {"prompt": "The river", "max_tokens": 12, "temperature": 0, "logprobs": 3}
    first = read_all(server.send(post(body, "/v1/completions")))
    expected = json.dumps(json.loads(body_of(first))["choices"])
    clients = [Client(once, seed) for seed, once in enumerate(
        [*[worker(server)] * 10, *[storm(server)] * 2, misfit(server),
         neighbour(server, body, expected)])]
    # Warm: all pages touched, all buffers grown.
    warm = [Client(worker(server), seed) for seed in range(100, 112)]
    soak(server, warm, min(10.0, options.seconds / 3))
    server.wait_for_idle(60)
    before = {"threads": server.status_field("Threads"), "files": open_files(server)}
    samples = soak(server, clients, options.seconds)
    idle = server.wait_for_idle(60)
    time.sleep(1)
    after = {"threads": server.status_field("Threads"), "files": open_files(server)}
    free, total = server.metric("spud_engine_kv_pages_free"), server.metric("spud_engine_kv_pages")
    cached = server.metric("spud_engine_prefix_cache_pages")
    slope, growth = slope_per_hour(samples), samples[-1][1] - samples[len(samples) // 4][1]
    print(f"{sum(c.done for c in clients)} calls in {options.seconds:.0f} s; memory "
          f"{samples[0][1]:.1f} -> {samples[-1][1]:.1f} MiB, slope of the second half "
          f"{slope:+.1f} MiB/h")
    problems = [p for c in [*clients, *warm] for p in c.problems]
    checks = {
        "no answer was wrong": not problems,
        "nothing runs at the end": idle,
        f"all pages are free ({free:.0f} of {total:.0f}, {cached:.0f} of them cached)":
            free == total,
        f"threads {before['threads']} -> {after['threads']}": before["threads"] == after["threads"],
        f"files {before['files']} -> {after['files']}": after["files"] <= before["files"] + 2,
        f"memory stays ({growth:+.1f} MiB)": slope < MAX_SLOPE_MIB_PER_HOUR
            if options.seconds >= 600 else growth < MAX_GROWTH_MIB,
        "it ends when asked": server.stop() == 0,
    }
    for name, ok in checks.items():
        print(f"{'ok  ' if ok else 'FAIL'} {name}")
    for problem in problems[:5]:
        print(problem)
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return not all(checks.values())


sys.exit(main())
