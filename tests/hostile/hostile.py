# SPDX-License-Identifier: Apache-2.0
"""Clients that misbehave in every way we know, while a normal client keeps asking. Each case must
leave the server answering, and its memory where it was. Standard library only."""
import os
import random
import socket
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from spud_server import Server, post, read_all, reset, status_of  # noqa: E402

FLAGS = ["--ctx", "512", "--max-sequences", "8", "--max-queue", "64",
         "--max-connections", "1200", "--header-timeout-s", "2", "--body-timeout-s", "3",
         "--idle-timeout-s", "20", "--write-timeout-s", "3", "--log-level", "warn",
         "--max-buffered-bytes", "65536"]
# Memory may grow while a case runs by what it legitimately holds, and must come back.
MAX_PEAK_GROWTH_MIB = 150
MAX_LASTING_GROWTH_MIB = 20
CHAT = {"messages": [{"role": "user", "content": "Count."}], "max_tokens": 3, "temperature": 0}


class NormalClient(threading.Thread):
    """Asks again and again; every answer must be right and in time."""

    def __init__(self, server):
        super().__init__(daemon=True)
        self.server, self.stop = server, threading.Event()
        self.answers, self.slowest, self.failures = 0, 0.0, []

    def run(self):
        while not self.stop.is_set():
            started = time.monotonic()
            try:
                answer = read_all(self.server.send(post(CHAT)))
                # 429 is an answer: come back later. Only other refusals and silence are failures.
                if status_of(answer) not in (200, 429):
                    self.failures.append(answer[:200])
            except OSError as error:
                self.failures.append(repr(error))
            self.answers += 1
            self.slowest = max(self.slowest, time.monotonic() - started)
            self.stop.wait(0.1)

    def forgive(self, since):
        """Forgets later failures, the one of a request that is under way now included."""
        asked = self.answers
        while self.answers < asked + 2:
            time.sleep(0.05)
        del self.failures[since:]


# --- the cases: each returns None or what went wrong ---

def slow_headers(server):
    sockets = [server.send(b"GET /health HTTP/1.1\r\nHo") for _ in range(50)]
    deadline = time.monotonic() + 6
    while time.monotonic() < deadline:
        for s in sockets:  # one more byte now and then does not buy more time
            try:
                s.send(b"x")
            except OSError:
                pass
        time.sleep(0.3)
    answers = [read_all(s) for s in sockets]
    wrong = [a for a in answers if a and status_of(a) != 408]
    return f"{wrong[0][:80]}" if wrong else None


def slow_body(server):
    head = b"POST /v1/chat/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 5000000\r\n\r\n{"
    sockets = [server.send(head) for _ in range(50)]
    started = time.monotonic()
    answers = [read_all(s) for s in sockets]
    if time.monotonic() - started > 10:
        return "slow bodies were not cut off in time"
    return None if all(status_of(a) == 408 for a in answers) else "expected 408"


def slow_reader(server):
    """Asks for long streams and never reads them."""
    body = {"prompt": "x", "max_tokens": 400, "stream": True, "ignore_eos": True, "logprobs": 20}
    sockets = [server.send(post(body, "/v1/completions"), receive_buffer=4096) for _ in range(8)]
    time.sleep(6)
    ok = server.wait_for_idle(20)
    for s in sockets:
        reset(s)
    return None if ok else "streams nobody reads are still being generated"


def idle_connections(server):
    sockets = [server.connect() for _ in range(1000)]
    count = server.metric("spud_http_connections")
    answer = read_all(server.send(post(CHAT)))
    held = server.rss_mib()
    for s in sockets:
        s.close()
    if count < 1000:
        return f"only {count} connections are open"
    print(f"    1000 idle connections: {held:.0f} MiB resident")
    return None if status_of(answer) == 200 else "no answer beside 1000 idle connections"


def too_many_idle_connections(server):
    """More than the limit and none says a word: whoever does ask takes the place of one of them."""
    sockets = [server.connect() for _ in range(1500)]
    answers = [status_of(read_all(server.send(post(CHAT)))) for _ in range(20)]
    count = server.metric("spud_http_connections")
    for s in sockets:
        s.close()
    if any(status != 200 for status in answers):
        return f"answers beside the flood: {answers}"
    return None if count <= 1200 else f"{count:.0f} connections are open, the limit is 1200"


def too_many_busy_connections(server):
    """Every place is taken by half a request: others are told so at once, and served again when the
    half requests time out. The normal client must be told, too, so it is not counted here."""
    while server.metric("spud_http_connections") > 5:  # those of the case before
        time.sleep(0.05)
    failures = len(server.normal_client.failures)
    half = b"GET /health HTTP/1.1\r\nHo"
    sockets = [server.send(half) for _ in range(1300)]
    refused = 0
    for s in sockets[-50:]:
        s.settimeout(5)
        try:
            refused += status_of(s.recv(4096)) == 503
        except OSError:
            pass
    started = time.monotonic()
    while (status := status_of(read_all(server.send(post(CHAT))))) != 200:
        if status not in (0, 503) or time.monotonic() - started > 10:
            return f"status {status} after {time.monotonic() - started:.1f} s"
        time.sleep(0.1)
    for s in sockets:
        s.close()
    server.normal_client.forgive(since=failures)
    return None if refused >= 40 else f"only {refused} of 50 were told why"


def disconnect_everywhere(server):
    """Goes away after every prefix of a request, politely and not, and at many points of the answer."""
    request = post({**CHAT, "stream": True, "max_tokens": 100})
    rng = random.Random(1)
    for cut in range(0, len(request), 3):
        s = server.send(request[:cut])
        reset(s) if rng.random() < 0.5 else s.close()
    for _ in range(60):
        s = server.send(request)
        s.settimeout(0.5)
        try:
            s.recv(rng.randint(1, 3000))
        except OSError:
            pass
        reset(s) if rng.random() < 0.5 else s.close()
    return None if server.wait_for_idle() else "work goes on for clients that left"


def oversized(server):
    cases = [
        (413, post(b"x" * (9 << 20))),
        (413, b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nContent-Length: 99999999999\r\n\r\n"),
        (413, b"POST /v1/completions HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n"
              + b"100000\r\n" + b"x" * (1 << 20) + b"\r\n" + b"F00000\r\n" + b"y" * (9 << 20)),
        (431, b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\nHost: t\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: t\r\nX: " + b"b" * 200_000 + b"\r\n\r\n"),
        (431, b"GET / HTTP/1.1\r\nHost: t\r\n" + b"H: v\r\n" * 50_000 + b"\r\n"),
        (400, post({"prompt": "word " * 1_000_000}, "/v1/completions")),
        (400, post({"prompt": [1] * 1_000_000}, "/v1/completions")),
        (400, post({"prompt": ["x"] * 100_000}, "/v1/completions")),
        (400, post({"messages": [{"role": "user", "content": "x"}] * 50_000})),
        (400, post({**CHAT, "stop": ["x"] * 100_000})),
        (400, post({**CHAT, "logit_bias": {str(i): 1 for i in range(100_000)}})),
        (400, post(b"[" * (4 << 20))),
        (400, post(b'{"a":' * (1 << 19))),
        (400, post({**CHAT, "n": 10**9})),
        (400, post({**CHAT, "max_tokens": 10**9})),
        (400, post(b'{"messages":[{"role":"user","content":"' + b"\\ud800" * 1000 + b'"}]}')),
    ]
    for expected, data in cases:
        answer = read_all(server.send(data))
        if status_of(answer) != expected:
            return f"{data[:60]!r}...: {answer[:100]!r}, expected {expected}"
    return None


def malformed(server):
    cases = [
        b"\r\n\r\n", b"GET\r\n\r\n", b"GET /\r\n\r\n", b"GET / HTTP/1.1\n\n", b"\x16\x03\x01\x02\x00\x01",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x00" * 100, b"\xff" * 100, os.urandom(500) + b"\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n", b"GET / HTTP/2.7\r\nHost: t\r\n\r\n", b"GET / FTP/1.1\r\nHost: t\r\n\r\n",
        b"GET  / HTTP/1.1\r\nHost: t\r\n\r\n", b"GET / HTTP/1.1\r\nHost: t\r\nHost: u\r\n\r\n",
        b"GET /%zz HTTP/1.1\r\nHost: t\r\n\r\n", b"GET /\x01 HTTP/1.1\r\nHost: t\r\n\r\n",
        b"G\x00T / HTTP/1.1\r\nHost: t\r\n\r\n", b"GET / HTTP/1.1\r\nHost: t\r\nNo colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t\r\n: empty\r\n\r\n", b"GET / HTTP/1.1\r\nHost: t\r\nA b: c\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: t\r\nX: a\x00b\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: -1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 1e3\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcde",
        b"POST / HTTP/1.1\r\nHost: t\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nZZZ\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
        b"POST / HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcXX\r\n0\r\n\r\n",
    ]
    for data in cases:
        s = server.send(data)
        s.shutdown(socket.SHUT_WR)
        answer = read_all(s)
        # Either told so, or closed without a word; never treated as a request.
        if answer and status_of(answer) not in (400, 413, 417, 431, 505):
            return f"{data[:60]!r}: {answer[:100]!r}"
    return None


def pipelined_flood(server):
    """A hundred thousand requests without reading an answer."""
    s = server.connect(receive_buffer=4096)
    s.settimeout(4)
    try:
        s.sendall(b"GET /health HTTP/1.1\r\nHost: t\r\n\r\n" * 100_000)
    except OSError:
        pass  # the server stopped reading, as it should
    reset(s)
    return None


def random_bytes(server):
    rng = random.Random(7)
    request = post({**CHAT, "stream": True})
    for _ in range(300):
        data = bytearray(request)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        s = server.send(bytes(data))
        s.settimeout(0.05)
        try:
            s.recv(1000)
        except OSError:
            pass
        s.close()
    return None if server.wait_for_idle() else "work left over"


def cancelled_bursts(server):
    """Many requests at once that all go away while queued."""
    for _ in range(5):
        sockets = [server.send(post({**CHAT, "max_tokens": 300, "ignore_eos": True}))
                   for _ in range(60)]
        for s in sockets:
            s.close()
    return None if server.wait_for_idle() else "queued work of clients that left still runs"


CASES = [slow_headers, slow_body, slow_reader, idle_connections, too_many_idle_connections,
         too_many_busy_connections, disconnect_everywhere, oversized, malformed, pipelined_flood, random_bytes,
         cancelled_bursts]


def main():
    server = Server(FLAGS)
    # Warm: every sequence place filled to the end of its context at once, so that the KV pages,
    # which are a fixed budget but become resident when first used, count before and not after. No
    # two prompts alike, or they would share their pages.
    full = post({"prompt": [[65 + i] * 480 for i in range(8)], "max_tokens": 32, "ignore_eos": True},
                "/v1/completions")
    for _ in range(2):
        s = server.send(full)
        s.settimeout(120)
        if status_of(read_all(s)) != 200:
            server.process.kill()
            sys.exit("the warm-up failed")
    before = server.rss_mib()
    normal = NormalClient(server)
    server.normal_client = normal
    normal.start()
    print(f"resident before: {before:.1f} MiB")
    passed = failed = 0
    for case in CASES:
        started, asked = time.monotonic(), normal.answers
        try:
            problem = case(server)
        except Exception as error:  # a broken case is a failure, not the end of the run
            problem = repr(error)
        if not problem and server.process.poll() is not None:
            problem = f"the server died with {server.process.returncode}"
        if not problem and normal.failures:
            problem = f"the normal client failed: {normal.failures[0]!r}"
        growth = server.rss_mib() - before
        if not problem and growth > MAX_PEAK_GROWTH_MIB:
            problem = f"resident memory grew by {growth:.1f} MiB"
        normal.failures.clear()
        passed, failed = passed + (not problem), failed + bool(problem)
        print(f"{'FAIL' if problem else 'ok  '} {case.__name__}: {time.monotonic() - started:.1f} s, "
              f"{growth:+.1f} MiB, normal client: {normal.answers - asked} answers, slowest "
              f"{normal.slowest:.2f} s{'; ' + problem if problem else ''}", flush=True)
        normal.slowest = 0.0
        if server.process.poll() is not None:
            break
    normal.stop.set()
    normal.join(20)
    time.sleep(1)
    if server.process.poll() is None:
        lasting = server.rss_mib() - before
        print(f"resident after: {before + lasting:.1f} MiB ({lasting:+.1f})")
        ok = lasting <= MAX_LASTING_GROWTH_MIB
        passed, failed = passed + ok, failed + (not ok)
        server.process.terminate()
        ok = server.process.wait(20) == 0
        passed, failed = passed + ok, failed + (not ok)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


sys.exit(main())
