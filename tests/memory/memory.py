# SPDX-License-Identifier: Apache-2.0
"""A server is asked for the least memory it can do with, gets a little more, and then all that fills
it: every place and the whole queue taken, prompts as long as the context, sampling that needs all
logits, penalties, log-probs of prompts, large bodies. Resident memory is read all the while (what
the kernel can take back at any time, the mapped model file, is not there any more once it is ready).
Standard library only."""
import argparse
import os
import random
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from spud_server import BIN, MODEL, Server, post, read_all, status_of  # noqa: E402

CONTEXT, PLACES, QUEUE = 512, 12, 24
FLAGS = ["--ctx", str(CONTEXT), "--max-sequences", str(PLACES), "--max-queue", str(QUEUE),
         "--log-level", "warn"]
MIB = 1 << 20


def refusal(memory, extra=()):
    """What a server says that cannot do with so little."""
    run = subprocess.run([BIN, "serve", MODEL, "--port", "0", *FLAGS, "--memory", str(memory), *extra],
                         capture_output=True, text=True, timeout=120)
    return run.returncode, run.stderr


def least_memory():
    """By its own account, from the sentence that refuses a megabyte."""
    status, error = refusal(MIB)
    found = re.search(r"raise --memory to at least (\d+)", error)
    if status == 0 or not found:
        sys.exit(f"a megabyte was not refused as expected: {error}")
    return int(found[1]), error


def random_request(rng):
    prompt = [rng.randrange(100, 250) for _ in range(rng.choice([1, 40, 200, CONTEXT - 60]))]
    body = {"prompt": prompt, "max_tokens": 50, "ignore_eos": True, "seed": rng.randrange(1 << 30),
            "temperature": rng.choice([0, 1, 1.5]), "logprobs": rng.choice([None, 5]),
            "frequency_penalty": rng.choice([0, 0.5]), "stream": rng.random() < 0.5}
    if rng.random() < 0.1:
        body |= {"echo": True, "logprobs": 2, "max_tokens": 1}
    if rng.random() < 0.05:
        # Does not fit, but is parsed and tokenised before that is known; or is too long for that.
        body["prompt"] = rng.choice([" ", "river "]) * rng.choice([11_000, 1_000_000])
    return body


def load(server, seconds):
    """The most that was resident, in bytes, and what went wrong."""
    most, problems, stop = 0, [], threading.Event()

    def client(seed):
        rng = random.Random(seed)
        while not stop.is_set():
            body = random_request(rng)
            status = status_of(read_all(server.send(post(body, "/v1/completions"), timeout_s=300)))
            expected = (200, 429, 503)
            if isinstance(body["prompt"], str):  # 0: the end of a body that nobody reads
                expected += (400, 413, 0)
            if status not in expected and len(problems) < 5:
                problems.append(f"status {status}")

    with ThreadPoolExecutor(PLACES + QUEUE + 4) as pool:
        for seed in range(PLACES + QUEUE + 4):
            pool.submit(client, seed)
        began = time.monotonic()
        while time.monotonic() - began < seconds and server.process.poll() is None:
            held = server.status_field("VmRSS") + server.status_field("VmSwap")
            most = max(most, held * 1024)
            time.sleep(0.02)
        stop.set()
    return most, problems


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="of load, for each limit")
    options = parser.parse_args()
    checks = {}
    least, error = least_memory()
    checks[f"too little is refused with a number ({least / MIB:.1f} MiB)"] = "--ctx" in error
    status, error = refusal(least + 4 * MIB, ["--kv-memory", str(1 << 30)])
    checks["too much for keys and values is refused by the names of both flags"] = \
        status != 0 and "--kv-memory (kv_memory)" in error and "--memory (memory)" in error
    # What the process holds at start differs by a page or two from one start to the next.
    for name, memory in (("just enough", least + 2 * MIB), ("half as much again", least * 3 // 2)):
        server = Server([*FLAGS, "--memory", str(memory)])
        most, problems = load(server, options.seconds)
        idle, pages = server.wait_for_idle(60), server.metric("spud_engine_kv_pages")
        status = server.stop()
        checks[f"{name}: {most / MIB:.1f} MiB at most of {memory / MIB:.1f} MiB allowed, "
               f"{pages:.0f} pages"] = 0 < most <= memory
        checks[f"{name}: everything was answered, nothing is left {problems or ''}"] = \
            not problems and idle and status == 0
    for name, ok in checks.items():
        print(f"{'ok  ' if ok else 'FAIL'} {name}")
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed")
    return not all(checks.values())


sys.exit(main())
