# SPDX-License-Identifier: Apache-2.0
"""Starts spud serve on a free port and gives tests the official client. One server for most tests;
those that need other options start their own with `serve`."""
import contextlib
import http.client
import json
import os
import subprocess
import threading
import time

import openai
import pytest

BIN = os.environ["SPUD_BIN"]
MODEL = os.environ["SPUD_MODEL"]
START_LIMIT_S = 60
STOP_LIMIT_S = 30


class Server:
    """A running spud serve: its URL, and small helpers for what the client does not show."""

    def __init__(self, *flags, env=None):
        self.process = subprocess.Popen(
            [BIN, "serve", MODEL, "--port", "0", "--json", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, **(env or {})})
        self.log = []
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        timer = threading.Timer(START_LIMIT_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            self.process.wait()
            self._reader.join()
            raise RuntimeError("spud serve did not start: " + "".join(self.log))
        ready = json.loads(line)
        self.port, self.url, self.model = ready["port"], ready["url"], ready["model"]

    def _read_log(self):
        for line in self.process.stderr:
            self.log.append(line)

    def client(self, **options):
        options = {"api_key": "none", "max_retries": 0, "timeout": 60, **options}
        return openai.OpenAI(base_url=self.url + "/v1", **options)

    def request(self, method, path, body=None, headers=None, timeout=60):
        """(status, headers, body text) of one plain request."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)
        try:
            data = json.dumps(body) if isinstance(body, (dict, list)) else body
            connection.request(method, path, data, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.headers), answer.read().decode()
        finally:
            connection.close()

    def post(self, path, body, headers=None):
        status, _, text = self.request("POST", path, body, headers)
        return status, json.loads(text)

    def metric(self, name):
        """Sum over the series of that name."""
        total = 0.0
        for line in self.request("GET", "/metrics")[2].splitlines():
            if line.startswith((name + " ", name + "{")):
                total += float(line.rsplit(" ", 1)[1])
        return total

    def wait_for_idle(self, limit_s=10):
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if self.metric("spud_engine_running_sequences") + \
               self.metric("spud_engine_waiting_sequences") == 0:
                return True
            time.sleep(0.02)
        return False

    def context(self):
        return json.loads(self.request("GET", "/v1/models")[2])["data"][0]["max_model_len"]

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextlib.contextmanager
def running(*flags, env=None):
    server = Server(*flags, env=env)
    try:
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="session")
def server():
    with running("--ctx", "512", "--max-sequences", "8") as one:
        yield one


@pytest.fixture(scope="session")
def client(server):
    return server.client()


@pytest.fixture(scope="session")
def small_server():
    """A short context and a queue of one, to reach limits quickly."""
    with running("--ctx", "128", "--max-sequences", "1", "--max-queue", "1") as one:
        yield one


@pytest.fixture(scope="session")
def real_model():
    """For cases that say something about a real model's text only."""
    if os.environ.get("SPUD_MODEL_IS_MADE_UP"):
        pytest.skip("needs a real model: tools/fetch-model smollm2-135m-instruct")


@pytest.fixture()
def ask(client, server):
    """A greedy chat."""
    def call(content="Tell me about the sea.", **options):
        options = {"max_tokens": 16, "temperature": 0, **options}
        return client.chat.completions.create(
            model=server.model, messages=[{"role": "user", "content": content}], **options)
    return call


@pytest.fixture()
def complete(client, server):
    """A greedy completion."""
    def call(prompt="The sea is", **options):
        options = {"max_tokens": 16, "temperature": 0, **options}
        return client.completions.create(model=server.model, prompt=prompt, **options)
    return call


def pytest_unconfigure(config):
    """The very last line, in the form that every suite here ends with."""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    count = lambda *kinds: sum(len(reporter.stats.get(kind, [])) for kind in kinds)
    print(f"{count('passed')} passed, {count('failed', 'error')} failed"
          + (f" ({count('skipped')} skipped)" if count("skipped") else ""))
