# SPDX-License-Identifier: Apache-2.0
"""Full load with disconnect storms, prompts that do not fit, full queues and too few pages. Sampled
all the while: memory (resident and swapped), running sequences; a line each minute. At the end nothing
may be left over: no sequence, no page, no thread, no descriptor; and memory must be flat: its slope by
least squares from the tenth minute on (of short runs: the second half) is printed in MiB an hour, and
judged in runs of ten minutes and more; shorter ones are judged by growth. Standard library only."""
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
MAX_SLOPE_MIB_PER_HOUR = 20
MAX_GROWTH_MIB = 24  # of runs that are too short for a slope to mean something
SETTLING_S, SHORT_S = 600, 600  # pages and caches fill first
LOAD_EVERY_S = 5
MIN_RUNNING = 6  # of 12 on average, or it was no full load


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


def settled(samples, seconds):
    return [s for s in samples if s[0] >= min(SETTLING_S, seconds / 2)]


def slope_per_hour(samples):
    """MiB an hour, least squares; and how far one sample lies from the line, in MiB."""
    if len(samples) < 3:
        return 0.0, 0.0
    times, values = zip(*samples)
    line = statistics.linear_regression(times, values)
    return line.slope * 3600, statistics.pstdev(v - line.slope * t for t, v in samples)


class Watch:
    """Samples of memory and load while the clients run."""

    def __init__(self, server, clients, seconds):
        self.server, self.clients, self.seconds = server, clients, seconds
        self.memory, self.running = [], []

    def sample(self, at):
        self.memory.append((at, memory_mib(self.server)))
        if len(self.memory) % LOAD_EVERY_S == 0:
            self.running.append(self.server.metric("spud_engine_running_sequences"))
        if len(self.memory) % 60 == 0:
            calls, problems = (sum(n) for n in zip(*((c.done, len(c.problems)) for c in self.clients)))
            print(f"  {at / 60:4.0f} of {self.seconds / 60:.0f} min: {self.memory[-1][1]:.1f} MiB, "
                  f"{self.server.status_field('Threads')} threads, {open_files(self.server)} files, "
                  f"{statistics.mean(self.running[-60 // LOAD_EVERY_S:]):.0f} running, {calls} calls, "
                  f"{problems} problems", flush=True)


def soak(server, clients, seconds):
    watch, began = Watch(server, clients, seconds), time.monotonic()
    for client in clients:
        client.start()
    while (at := time.monotonic() - began) < seconds and server.process.poll() is None:
        watch.sample(at)
        time.sleep(max(0.0, len(watch.memory) - (time.monotonic() - began)))
    for client in clients:
        client.stop.set()
    for client in clients:
        client.join(150)
    return watch


def left_over(server):
    return {"threads": server.status_field("Threads"), "files": open_files(server)}


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
    before = left_over(server)
    watch = soak(server, clients, options.seconds)
    idle = server.wait_for_idle(60)
    time.sleep(1)
    after = left_over(server)
    free, total = server.metric("spud_engine_kv_pages_free"), server.metric("spud_engine_kv_pages")
    cached, preempted = (server.metric(f"spud_engine_{name}") for name in ("prefix_cache_pages", "preemptions_total"))
    tokens = server.metric("spud_gateway_generated_tokens_total")
    memory = settled(watch.memory, options.seconds)
    (slope, noise), growth = slope_per_hour(memory), watch.memory[-1][1] - watch.memory[len(watch.memory) // 4][1]
    running = statistics.mean(watch.running)
    print(f"{sum(c.done for c in clients)} calls, {tokens:.0f} tokens, {preempted:.0f} preemptions in "
          f"{options.seconds:.0f} s; memory {watch.memory[0][1]:.1f} -> {watch.memory[-1][1]:.1f} MiB, most "
          f"{max(m for _, m in watch.memory):.1f}; slope from {memory[0][0]:.0f} s on {slope:+.1f} MiB/h "
          f"(limit {MAX_SLOPE_MIB_PER_HOUR}; samples lie {noise:.1f} MiB around it)")
    problems = [p for c in [*clients, *warm] for p in c.problems]
    long = options.seconds >= SHORT_S
    flat = (f"memory is flat: {slope:+.1f} MiB/h, limit {MAX_SLOPE_MIB_PER_HOUR}" if long else
            f"memory stays: {growth:+.1f} MiB, limit {MAX_GROWTH_MIB} (too short for a slope)")
    checks = {
        "no answer was wrong": not problems,
        f"load: {running:.1f} sequences ran on average" + (f", at least {MIN_RUNNING}" if long else ""):
            running >= MIN_RUNNING or not long,
        "nothing runs at the end": idle,
        f"all pages are free ({free:.0f} of {total:.0f}, {cached:.0f} of them cached)":
            free == total,
        f"threads {before['threads']} -> {after['threads']}": before["threads"] == after["threads"],
        f"files {before['files']} -> {after['files']}": after["files"] <= before["files"],
        flat: slope <= MAX_SLOPE_MIB_PER_HOUR if long else growth <= MAX_GROWTH_MIB,
        "it ends when asked": server.stop() == 0,
    }
    for name, ok in checks.items():
        print(f"{'ok  ' if ok else 'FAIL'} {name}")
    for problem in problems[:5]:
        print(problem)
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return not all(checks.values())


sys.exit(main())
