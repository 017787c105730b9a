# SPDX-License-Identifier: Apache-2.0
"""Deadlines, timeouts, waiting times and log limits run on the steady clock; wall time is for stamps.
A server is started with a wall clock that is set an hour further fifty times a second, and 100 hours
back now and then. What is checked on it is checked once more on a server whose steady clock jumps: there
it must fail, or the checks see nothing. Limits on time are far from an hour and far from what a busy
machine needs. Standard library only."""
import email.utils
import json
import os
import signal
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from spud_server import Server, body_of, post, read_all, status_of  # noqa: E402

FLAGS = ["--ctx", "512", "--max-sequences", "4", "--max-queue", "16",
         "--header-timeout-s", "2", "--body-timeout-s", "120", "--idle-timeout-s", "120",
         "--request-timeout-s", "300", "--drain-s", "120", "--log-level", "debug"]
LOG_BURST, LOG_WINDOW_S = 20, 10  # telemetry/log.hpp
LONG, SHORT_S, PATIENCE_S = 400, 0.4, 240
BODY = {"prompt": "The river", "temperature": 0, "ignore_eos": True}


def ask(server, body, extra=""):
    answer = read_all(server.send(post(BODY | body, "/v1/completions", extra), timeout_s=PATIENCE_S))
    return status_of(answer), answer


def stamps_follow_the_wall_clock(server):
    dates = []
    for _ in range(60):
        head = ask(server, {"max_tokens": 1})[1].partition(b"\r\n\r\n")[0].decode()
        line = next(line for line in head.split("\r\n") if line.lower().startswith("date:"))
        dates.append(email.utils.parsedate_to_datetime(line[5:].strip()).timestamp())
    return None if max(dates) - min(dates) > 3000 else "the clock did not jump: nothing is proved"


def requests_under_way_finish(server):
    """Several at a time, so that some wait for a place; each with a deadline well before an hour."""
    answers = []

    def client(i):
        answers.append(ask(server, {"max_tokens": 60, "seed": i}, "X-Request-Timeout-Ms: 200000\r\n"))

    threads = [threading.Thread(target=client, args=(i,)) for i in range(12)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for status, answer in answers:
        if status != 200:
            return f"{answer[:300]!r}"
        usage = json.loads(body_of(answer))["usage"]
        if usage["completion_tokens"] != 60:
            return f"{usage}"
    return None


def a_deadline_passes_when_it_is_due(server):
    began = time.monotonic()
    status, answer = ask(server, {"max_tokens": LONG},
                         f"X-Request-Timeout-Ms: {int(SHORT_S * 1000)}\r\n")
    took = time.monotonic() - began
    if status == 200:
        return None if took <= SHORT_S else "a deadline had no effect"
    if status == 503:
        return None  # refused before it began: it would not make it
    return None if took >= 0.9 * SHORT_S and b"deadline" in answer else f"after {took:.2f} s: {answer[:300]!r}"


def an_idle_connection_stays(server):
    s = server.connect(timeout_s=PATIENCE_S)
    for _ in range(4):
        s.sendall(b"GET /health HTTP/1.1\r\nHost: t\r\n\r\n")
        if b"200" not in s.recv(4096).split(b"\r\n", 1)[0]:
            return "an idle connection was closed"
        time.sleep(0.5)
    s.close()
    return None


def slow_headers_time_out(server):
    s = server.connect(timeout_s=PATIENCE_S)
    began = time.monotonic()
    s.sendall(b"GET /health HT")
    read_all(s)
    took = time.monotonic() - began
    return None if 1.8 <= took <= 60 else f"closed after {took:.1f} s, the limit is 2 s"


def the_limit_on_log_lines_holds(server):
    """A line for each request, of which so many are printed in a while and no more."""
    lines_before, began = server.count_logged("debug request"), time.monotonic()
    for _ in range(300):
        read_all(server.send(b"GET /health HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"))
        time.sleep(0.005)
    windows = 2 + int((time.monotonic() - began) / LOG_WINDOW_S)
    lines = server.count_logged("debug request") - lines_before
    return None if lines <= LOG_BURST * windows else \
        f"{lines} lines, at most {LOG_BURST * windows} are allowed"


def running_answers_finish_at_the_end(server):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(ask(server, {"max_tokens": LONG})))
    thread.start()
    while server.metric("spud_engine_running_sequences") == 0 and thread.is_alive():
        time.sleep(0.01)
    server.process.send_signal(signal.SIGTERM)
    thread.join()
    status = server.process.wait(PATIENCE_S)
    return None if answers[0][0] == 200 and status == 0 else f"{answers[0][1][:300]!r}, status {status}"


CASES = (stamps_follow_the_wall_clock, requests_under_way_finish, a_deadline_passes_when_it_is_due,
         an_idle_connection_stays, slow_headers_time_out, the_limit_on_log_lines_holds,
         running_answers_finish_at_the_end)


class ShimmedServer(Server):
    def __init__(self, clock):
        self.log = tempfile.NamedTemporaryFile("w+", suffix=".log")
        os.environ.update(LD_PRELOAD=os.environ["SPUD_CLOCK_SHIM"], SPUD_SHIM_CLOCK=clock)
        stderr = os.dup(2)
        os.dup2(self.log.fileno(), 2)
        try:
            super().__init__(FLAGS)
        finally:
            os.dup2(stderr, 2)
            os.close(stderr)
            del os.environ["LD_PRELOAD"]

    def count_logged(self, text):
        with open(self.log.name, encoding="utf-8") as log:
            return sum(text in line for line in log)


def run(clock, cases):
    server = ShimmedServer(clock)
    problems = {}
    for case in cases:
        try:
            problems[case.__name__] = case(server)
        except (OSError, ValueError, StopIteration) as error:
            problems[case.__name__] = repr(error)
    server.stop()
    return problems


def main():
    passed, failed = 0, 0
    for name, problem in run("wall", CASES).items():
        passed, failed = passed + (problem is None), failed + (problem is not None)
        print(f"{'FAIL' if problem else 'ok  '} {name.replace('_', ' ')}{': ' + problem if problem else ''}",
              flush=True)
    # A steady clock that jumps: what is timed by it goes wrong, and the checks must see it.
    seen = run("steady", (requests_under_way_finish, slow_headers_time_out))
    noticed = sum(problem is not None for problem in seen.values())
    passed, failed = passed + (noticed > 0), failed + (noticed == 0)
    print(f"{'ok  ' if noticed else 'FAIL'} the same checks notice a steady clock that jumps ({seen})")
    print(f"{passed} passed, {failed} failed")
    return failed > 0


sys.exit(main())
