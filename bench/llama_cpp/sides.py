# SPDX-License-Identifier: Apache-2.0
"""The two sides of the comparison, each behind the same few calls."""

import json

import peers

PREFILL_TOKENS, DECODE_TOKENS = 512, 128
BATCH_PROMPT, BATCH_DECODE = 128, 64
STREAMS = (8, 16, 32)
CONTEXT, CONTEXT_DECODE = 4096, 64
CLIENTS = 16


class LlamaCpp:
    name = "llama.cpp"

    def __init__(self, binaries, threads):
        self.binaries, self.threads = binaries, threads

    def bench(self, model, *arguments):
        return peers.run_json([self.binaries / "llama-bench", "-m", model, "-t", self.threads, "-r", 1, "-o", "json",
                               *arguments])

    def single(self, model):
        rows = self.bench(model, "-p", PREFILL_TOKENS, "-n", DECODE_TOKENS)
        return {"prefill 512": next(row["avg_ts"] for row in rows if row["n_prompt"]),
                "decode 1": next(row["avg_ts"] for row in rows if row["n_gen"])}

    def batched(self, model):
        context = max(STREAMS) * (BATCH_PROMPT + BATCH_DECODE)
        text = peers.run_text([self.binaries / "llama-batched-bench", "-m", model, "-t", self.threads, "-c", context,
                               "-npp", BATCH_PROMPT, "-ntg", BATCH_DECODE, "-npl", ",".join(map(str, STREAMS)),
                               "--output-format", "jsonl"])
        rows = [json.loads(line) for line in text.splitlines() if line.startswith("{")]
        return {f"decode {row['pl']}": row["speed_tg"] for row in rows}

    def context(self, model):
        prefill = self.bench(model, "-p", CONTEXT, "-n", 0)
        decode = self.bench(model, "-p", 0, "-n", CONTEXT_DECODE, "-d", CONTEXT - CONTEXT_DECODE)
        return {"prefill 4096": prefill[0]["avg_ts"], "decode at 4096": decode[0]["avg_ts"]}

    def server(self, model, log, context, **options):
        return peers.llama_server(self.binaries, model, self.threads, CLIENTS, context, log, **options)


def share_of_limit(row):
    """Of a prefill the matrix products alone are held to the integer peak, of all else the whole step."""
    return row.get("products_fraction_of_limit" if row["what"].startswith("prefill") else "fraction_of_limit")


class Spud:
    name = "spud"

    def __init__(self, program, threads):
        self.program, self.threads, self.shares = program, threads, {}

    def bench(self, model, prompt, generate, depth, streams):
        report = peers.run_json([self.program, "bench", model, "--json", "--threads", self.threads, "--repeats", 1,
                                 "--prompt", prompt, "--generate", generate, "--depth", depth, "--streams", streams])
        return {row["what"]: (row["tokens_per_s"], share_of_limit(row)) for row in report["results"]}

    def keep(self, model, rows, names):
        """Rates under the figures' names; shares of the limit are remembered beside."""
        for ours, name in names.items():
            self.shares.setdefault((model.stem, name), []).append(rows[ours][1])
        return {name: rows[ours][0] for ours, name in names.items()}

    def single(self, model):
        # llama-bench generates from an empty context.
        rows = self.bench(model, PREFILL_TOKENS, DECODE_TOKENS, 0, 1)
        return self.keep(model, rows, {"prefill 512": "prefill 512", "decode 1": "decode 1"})

    def batched(self, model):
        rows = self.bench(model, BATCH_PROMPT, BATCH_DECODE, BATCH_PROMPT, ",".join(map(str, STREAMS)))
        return self.keep(model, rows, {f"decode {n}": f"decode {n}" for n in STREAMS})

    def context(self, model):
        rows = self.bench(model, CONTEXT, CONTEXT_DECODE, CONTEXT - CONTEXT_DECODE, 1)
        return self.keep(model, rows, {"prefill 4096": "prefill 4096", "decode 1": "decode at 4096"})

    def server(self, model, log, context, cache=False, **options):  # our cache is part of us: always on
        return peers.spud_server(self.program, model, self.threads, CLIENTS, context, log, **options)
