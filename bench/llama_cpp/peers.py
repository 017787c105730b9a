# SPDX-License-Identifier: Apache-2.0
"""What the comparisons share: where programs and models are, running a server, small statistics."""

import contextlib
import hashlib
import json
import os
import pathlib
import platform
import re
import socket
import statistics
import subprocess
import sys
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parents[2]
START_LIMIT_S = 120


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "spud"


def set_up():
    """Folder of llama.cpp's programs and of the model files; builds what is missing."""
    run = subprocess.run([str(pathlib.Path(__file__).parent / "setup")], stdout=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit("bench: llama.cpp could not be set up")
    return pathlib.Path(run.stdout.strip()), cache_folder() / "peers" / "models"


def spud_program():
    path = pathlib.Path(os.environ.get("SPUD", ROOT / "build/release/bin/spud"))
    if not path.exists():
        sys.exit(f"bench: {path} is missing; build it: cmake --preset release && cmake --build --preset release")
    return path


def shared_folder():
    return pathlib.Path(os.environ.get("SPUD_SHARED", ROOT.parent / "shared"))


def machine():
    text = pathlib.Path("/proc/cpuinfo").read_text()
    model = re.search(r"model name\s*:\s*(.*)", text)
    flags = re.search(r"flags\s*:\s*(.*)", text)
    known = set(flags[1].split()) if flags else set()
    wanted = ["avx2", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8"]
    return {"cpu": model[1] if model else platform.processor(), "cores": len(os.sched_getaffinity(0)),
            "isa": [name for name in wanted if name in known]}


def run_text(command):
    """Standard output of a command."""
    run = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if run.returncode != 0:
        sys.exit(f"bench: '{' '.join(map(str, command))}' failed:\n{run.stderr[-2000:]}")
    return run.stdout


def run_json(command):
    return json.loads(run_text(command))


def median(values):
    return statistics.median(values) if values else None


def short(value):
    """A figure with as many digits as tell something."""
    return f"{value:.0f}" if abs(value) >= 1000 else f"{value:.2f}" if abs(value) >= 0.095 else f"{value:.2g}"


def spread(values):
    """Median absolute deviation, in per cent of the median."""
    middle = statistics.median(values)
    return 100 * statistics.median(abs(v - middle) for v in values) / abs(middle) if middle else 0.0


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def post(port, path, body, limit_s=600):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=limit_s) as response:
        return json.load(response)


def get(port, path, limit_s=60):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=limit_s) as response:
        return json.load(response)


def metrics(port):
    """What /metrics says, by name; labelled ones are added up."""
    found = {}
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as response:
        for line in response.read().decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                name = name.partition("{")[0]
                found[name] = found.get(name, 0.0) + float(value)
    return found


def model_name(port):
    return get(port, "/v1/models")["data"][0]["id"]


def wait_until_ready(child, port, path):
    end = time.monotonic() + START_LIMIT_S
    while time.monotonic() < end:
        if child.poll() is not None:
            sys.exit(f"bench: the server ended with code {child.returncode} before it was ready")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as response:
                if response.status == 200:
                    return
        except OSError:
            time.sleep(0.01)
    sys.exit(f"bench: no server on port {port} after {START_LIMIT_S} s")


@contextlib.contextmanager
def server(command, port, ready_path, log):
    """Runs a server until the block ends; its output goes to the file `log`. `ready_s` of the child
    is how long it took from its start to its first good answer."""
    began = time.monotonic()
    with open(log, "wb") as stream:
        child = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=stream,
                                 stderr=subprocess.STDOUT)
    try:
        wait_until_ready(child, port, ready_path)
        child.ready_s = time.monotonic() - began
        yield child
    finally:
        child.terminate()
        try:
            child.wait(30)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def llama_server(binaries, model, threads, slots, context_each, log, cache=False, keys=()):
    port = free_port()
    command = [binaries / "llama-server", "-m", model, "--host", "127.0.0.1", "--port", port, "-t", threads,
               "-np", slots, "-c", slots * context_each, "--no-ui"]
    if not cache:
        command += ["--no-cache-prompt", "--cache-ram", 0]
    if keys:
        command += ["--api-key", ",".join(keys)]
    return port, server(command, port, "/health", log)


def spud_server(spud, model, threads, slots, context_each, log, keys=(), flags=()):
    port = free_port()
    command = [spud, "serve", model, "--host", "127.0.0.1", "--port", port, "--threads", threads,
               "--ctx", context_each, "--max-sequences", slots, *flags]
    if keys:
        path = pathlib.Path(log).with_suffix(".keys")
        path.write_text("".join(f"{key} {hashlib.sha256(key.encode()).hexdigest()}\n" for key in keys))
        command += ["--api-keys", path]
    return port, server(command, port, "/ready", log)


def load(spud, port, *arguments):
    """One `spud load` against a server here; its report. Failed requests end the comparison: a rate
    over what happened to be answered would mean nothing."""
    report = run_json([spud, "load", f"http://127.0.0.1:{port}", "--json", *arguments])
    if report["failures"]:
        sys.exit(f"bench: requests failed: {report['failures']} {report['messages']}")
    return report


def resident_bytes(child):
    """What the process holds in memory now, mapped files included."""
    text = pathlib.Path(f"/proc/{child.pid}/status").read_text()
    return 1024 * int(re.search(r"VmRSS:\s*(\d+)", text)[1])


def random_model(models):
    """The 1.1 B model with random weights; made when it is missing."""
    path = models / "random-1.1b-q4_0.gguf"
    if not path.exists():
        say("making random-1.1b-q4_0.gguf (653 MB)")
        tool = pathlib.Path(os.environ.get("SPUD_MAKE_RANDOM_MODEL", spud_program().parent / "make_random_model"))
        part = path.with_suffix(".part")
        run_text([tool, part, "--tokenizer-from", fetched_model("smollm2-135m-instruct")])
        part.rename(path)
    return path


def fetched_model(name):
    return pathlib.Path(run_text([ROOT / "tools/fetch-model", name, "--quiet"]).strip())


def model_file(name, models):
    """A file by the name the scripts use: smollm2-TYPE, gemma3, random-1.1b, or a path."""
    if name == "smollm2-q4_1":
        return fetched_model("smollm2-135m-instruct")
    if name == "gemma3":
        return fetched_model("gemma-3-270m")
    if name == "random-1.1b":
        return random_model(models)
    path = pathlib.Path(name) if "/" in name or name.endswith(".gguf") else models / f"{name}.gguf"
    if not path.exists():
        sys.exit(f"bench: no model {path}; name smollm2-{{f16,q8_0,q4_0,q4_1}}, gemma3, gemma3-q5_0, random-1.1b or a file")
    return path


def made_from(model):
    """The file that a model file of ours was quantised from; nothing where that is not known."""
    if model.stem.startswith("gemma3-"):
        return fetched_model("gemma-3-270m")
    original = cache_folder() / "peers" / "models" / "smollm2-f16.gguf"
    return original if model.stem.startswith("smollm2-") and model.stem != original.stem else None


def print_table(rows, titles, left=(0,)):
    """Columns are right-aligned but for those in `left`."""
    widths = [max(len(str(row[i])) for row in [titles, *rows]) for i in range(len(titles))]
    for row in [titles, ["-" * width for width in widths], *rows]:
        cells = [str(c).ljust(w) if i in left else str(c).rjust(w) for i, (c, w) in enumerate(zip(row, widths))]
        print("  ".join(cells).rstrip())
