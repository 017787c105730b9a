# SPDX-License-Identifier: Apache-2.0
"""The parts of the comparison that need servers or texts: each takes one side, one model and the
number of the turn, and gives figures by name. What llama.cpp does not have gives nothing for it."""

import concurrent.futures
import contextlib
import pathlib
import tempfile
import threading
import time

import peers
from sides import CLIENTS

TOKENS_IN, TOKENS_OUT = 165, 64
PREFIX, AFTER_PREFIX, PREFIX_OUT = 512, 32, 16
WATCHED_OUT = 64  # long enough that all clients' streams are there together
FLOOD, FLOOD_IN, SHORT_S = 64, 1000, 30
PAGE_POSITIONS = 32  # of spud's pages of keys and values
STARTS = 3
WINDOWS = 16
SPECULATION_OUT, SPECULATION_TURNS = 96, 3


def serve(side, spud, model, turn):
    """16 clients in a closed loop; prompts are new in every turn."""
    with tempfile.TemporaryDirectory() as folder:
        port, running = side.server(model, pathlib.Path(folder) / "server.log", 512)
        with running as child:
            report = peers.load(spud, port, "--clients", CLIENTS, "--requests", 2 * CLIENTS, "--prompt", TOKENS_IN,
                                "--output", TOKENS_OUT, "--seed", 1 + turn, "--duration", "30min")
            return {"server tok/s": report["output_tokens_per_s"], "server ttft p50, s": report["ttft"]["p50_s"],
                    "server ttft p99, s": report["ttft"]["p99_s"],
                    "server memory, MB": peers.resident_bytes(child) / 1e6}


def start(side, spud, model, turn):
    """From the start of the program to the first good answer, the file in the file cache; for spud also
    with packed weights that an earlier start has left on disk."""
    def ready_s(**options):
        with tempfile.TemporaryDirectory() as logs:
            _, running = side.server(model, pathlib.Path(logs) / "server.log", 512, **options)
            with running as child:
                return child.ready_s

    model.read_bytes()  # warm
    figures = {"ready, s": peers.median([ready_s() for _ in range(STARTS)])}
    if side.name == "spud":
        with tempfile.TemporaryDirectory() as packed:
            flags = ["--packed-weights", packed]
            ready_s(flags=flags)
            figures["ready packed, s"] = peers.median([ready_s(flags=flags) for _ in range(STARTS)])
    return figures


class PageWatch:
    """Pages in use while the block runs: of the moment with the most streams (and then the most pages)."""

    def __init__(self, port):
        self.port, self.stop, self.streams, self.pages, self.page_bytes = port, threading.Event(), 0, 0, 0
        self.thread = threading.Thread(target=self.watch, daemon=True)

    def watch(self):
        while not self.stop.wait(0.01):
            now = peers.metrics(self.port)
            found = (now["spud_engine_running_sequences"], now["spud_engine_kv_pages"] - now["spud_engine_kv_pages_free"])
            self.streams, self.pages = max((self.streams, self.pages), found)
            self.page_bytes = now["spud_engine_prefix_cache_bytes"] / now["spud_engine_prefix_cache_pages"]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()


def shared_pages(watch):
    """What the streams take, beside what they would take if each had all pages of its own."""
    private = watch.streams * -(-(PREFIX + AFTER_PREFIX + WATCHED_OUT) // PAGE_POSITIONS)
    return {"prefix streams at a time": watch.streams,
            "prefix pages in use": watch.pages, "prefix pages in use, MB": watch.pages * watch.page_bytes / 1e6,
            "prefix pages if private": private, "prefix pages if private, MB": private * watch.page_bytes / 1e6,
            "prefix pages shared / private": watch.pages / private}


def prefix(side, spud, model, turn):
    """The same number of tokens in, once all of the client's own, once with the prefix shared."""
    with tempfile.TemporaryDirectory() as folder:
        port, running = side.server(model, pathlib.Path(folder) / "server.log", 768, cache=True)
        with running:
            common = ["--duration", "30min", "--form", "tokens"]
            clients = [*common, "--clients", CLIENTS, "--requests", 2 * CLIENTS]
            own, shared = ["--prompt", PREFIX + AFTER_PREFIX], ["--shared-prefix", PREFIX, "--prompt", AFTER_PREFIX]

            def run(number, *arguments, output=PREFIX_OUT):
                return peers.load(spud, port, *arguments, "--output", output, "--seed", 1000 * number + turn)

            cold = run(1, *clients, *own)
            run(2, *common, *shared, "--clients", 1, "--requests", 1)  # fills the cache
            hits = run(3, *clients, *shared)
            alone = run(4, *common, *shared, "--clients", 1, "--requests", 4)
            cold_s, hit_s = cold["ttft"]["p50_s"], hits["ttft"]["p50_s"]
            figures = {"prefix cold ttft p50, s": cold_s, "prefix hit ttft p50, s": hit_s,
                       "prefix p50 hit / cold": hit_s / cold_s, "prefix hit alone ttft p50, s": alone["ttft"]["p50_s"],
                       "prefix cached share": hits["cached_tokens"] / hits["prompt_tokens"]}
            if side.name == "spud":
                with PageWatch(port) as watch:
                    run(5, *clients, *shared, output=WATCHED_OUT)
                figures |= shared_pages(watch)
            return figures


def fairness(side, spud, model, turn):
    """The short tenant's time to first token, alone and beside the flood."""
    short = "name=short,key=short,arrivals=constant,rate=1,prompt=32,output=8,start=1"
    flood = f"name=flood,key=flood,arrivals=burst,requests={FLOOD},prompt={FLOOD_IN},output=16"
    with tempfile.TemporaryDirectory() as folder:
        port, running = side.server(model, pathlib.Path(folder) / "server.log", 1152, keys=("short", "flood"))
        with running:
            common = ["--api-key", "short", "--duration", f"{SHORT_S}s", "--drain", "20min"]
            alone = peers.load(spud, port, *common, "--tenant", short, "--seed", 1 + turn)
            both = peers.load(spud, port, *common, "--tenant", short, "--tenant", flood, "--seed", 1001 + turn)
            first, second = (r["tenants"]["short"]["ttft"]["p99_s"] for r in (alone, both))
            return {"short alone p99, s": first, "short flooded p99, s": second,
                    "short p99, flooded / alone": second / first}


def divergence(side, spud, model, turn):
    """What keys and values in int8 change of the mean KL divergence from the file this one was made of,
    against F16 ones; paired, with the 95 % interval of the change. The same in every turn."""
    if side.name != "spud" or turn > 0:
        return {}
    reference, text = peers.made_from(model), peers.shared_folder() / "data/wikitext2_test.txt"
    if reference is None or not text.exists():
        peers.say(f"{model.stem} divergence: skipped, " + (f"{text} is missing" if reference else "what it was made "
                                                           "of is not known"))
        return {}
    report = peers.run_json([spud, "eval", model, "--against", reference, "--kv-type", "int8", "--against-kv-type",
                             "f16", "--compare-kv-type", "f16", "--data", text, "--window", 512, "--max-windows",
                             WINDOWS, "--threads", side.threads, "--json"])
    low, high = report["kld_mean_change_interval"]
    return {"KL with F16 KV": report["kld_mean_compared"], "KL with int8 KV": report["kld_mean"],
            "KL change by int8 KV": report["kld_mean_change"], "KL change by int8 KV, lower end": low,
            "KL change by int8 KV, upper end": high}


def copied_text(number):
    """A list that is begun again: the answer is the list."""
    lines = "".join(f"Item {i}: the {word} of day {i + number} was sent to room {7 * i + number}.\n"
                    for i, word in enumerate("letter parcel lamp chair book clock mirror".split(), 1))
    return f"A list:\n{lines}\nThe same list, copied word by word:\n{lines}\nThe same list, copied again:\n"


def new_text(number):
    """Nothing in it helps to guess what comes, and the answer is drawn at a high temperature."""
    return f"Story number {number} begins on a rainy evening, and"


KINDS = {"copied text": (copied_text, 0.0), "new text": (new_text, 1.2)}


def speculation(side, spud, model, turn):
    """Output rate with speculation (the default) over the rate without, servers asked in turns."""
    if side.name != "spud":
        return {}
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        ports = {}
        for how, flags in {"on": [], "off": ["--no-speculation"]}.items():
            ports[how], running = side.server(model, pathlib.Path(folder) / f"{how}.log", 1024, flags=flags)
            stack.enter_context(running)
        figures = {}
        for kind, (text, temperature) in KINDS.items():
            for streams in (1, CLIENTS):
                rates = {how: [] for how in ports}
                for i in range(1 + SPECULATION_TURNS):
                    for how in ports if i % 2 else reversed(ports):
                        bodies = [{"model": peers.model_name(ports[how]), "prompt": text(1000 * i + 100 * turn + n),
                                   "max_tokens": SPECULATION_OUT, "temperature": temperature, "seed": n,
                                   "ignore_eos": True} for n in range(streams)]
                        if (rate := output_rate(ports[how], bodies)) and i:  # the first turn warms
                            rates[how].append(rate)
                on, off = peers.median(rates["on"]), peers.median(rates["off"])
                figures |= {f"{kind} {streams} speculating, tok/s": on, f"{kind} {streams} not speculating, tok/s": off,
                            f"speculation gain, {kind} {streams}": on / off}
        return figures


def output_rate(port, bodies):
    """Tokens per second of requests sent together."""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(len(bodies)) as pool:
        answers = list(pool.map(lambda body: peers.post(port, "/v1/completions", body), bodies))
    return sum(a["usage"]["completion_tokens"] for a in answers) / (time.monotonic() - began)
