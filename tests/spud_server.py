# SPDX-License-Identifier: Apache-2.0
"""A spud serve process and raw HTTP over sockets, for the suites that need to misbehave or to look
at the process itself. SPUD_BIN and SPUD_MODEL say what runs. Standard library only."""
import json
import os
import socket
import struct
import subprocess
import sys
import threading
import time

BIN, MODEL = os.environ["SPUD_BIN"], os.environ["SPUD_MODEL"]


class Server:
    def __init__(self, flags):
        self.process = subprocess.Popen([BIN, "serve", MODEL, "--port", "0", "--json", *flags],
                                        stdout=subprocess.PIPE, text=True)
        timer = threading.Timer(60, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            sys.exit("spud serve did not start")
        self.port = json.loads(line)["port"]

    def status_field(self, name):
        """A number of /proc/PID/status: VmRSS and its like in kB, Threads, ..."""
        with open(f"/proc/{self.process.pid}/status") as status:
            for line in status:
                if line.startswith(name + ":"):
                    return int(line.split()[1])
        return 0

    def rss_mib(self):
        return self.status_field("VmRSS") / 1024

    def stop(self, limit_s=60):
        """Asks it to end; its exit status."""
        self.process.terminate()
        try:
            return self.process.wait(limit_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return None

    def connect(self, receive_buffer=None, timeout_s=15):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.settimeout(timeout_s)
        s.connect(("127.0.0.1", self.port))
        return s

    def metric(self, name):
        text = read_all(self.send(b"GET /metrics HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n"))
        return sum(float(line.rsplit(" ", 1)[1]) for line in text.decode().splitlines()
                   if line.startswith((name + " ", name + "{")))

    def send(self, data, receive_buffer=None, timeout_s=15):
        s = self.connect(receive_buffer, timeout_s)
        try:
            s.sendall(data)
        except OSError:
            pass  # refused in the middle: the answer says why
        return s

    def wait_for_idle(self, limit_s=15):
        deadline = time.monotonic() + limit_s
        while time.monotonic() < deadline:
            if self.metric("spud_engine_running_sequences") == 0 and \
               self.metric("spud_engine_waiting_sequences") == 0:
                return True
            time.sleep(0.05)
        return False


def post(body, path="/v1/chat/completions", extra=""):
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    return (f"POST {path} HTTP/1.1\r\nHost: t\r\nContent-Length: {len(data)}\r\n{extra}"
            "Connection: close\r\n\r\n").encode() + data


def read_all(s):
    out = b""
    with s:
        try:
            while piece := s.recv(65536):
                out += piece
        except OSError:
            pass
    return out


def body_of(answer):
    return answer.partition(b"\r\n\r\n")[2]


def status_of(answer):
    parts = answer.split(b" ", 2)
    return int(parts[1]) if len(parts) > 1 and parts[1].isdigit() else 0


def reset(s):
    """Closes with a reset instead of a goodbye."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
