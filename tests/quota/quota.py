# SPDX-License-Identifier: Apache-2.0
"""How fast spud is when a container gives it one core, or two, whatever --threads says.

Threads of a step meet at barriers hundreds of times; more threads than cores may run at a time would
wait for one another. So the number is cut to what the quota lets run, and the log says why. Checked:
the number and the reason for quotas of 1, 1.5 and 2 cores (set on a parent group); and that the rate
of `spud bench` and of `spud serve` under one core is at least 0.45 of two cores', for every number of
threads asked. The sides take turns; figures are medians. Standard library only."""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import threading
import time

import cpu_quota

BIN, MODEL = os.environ["SPUD_BIN"], os.environ["SPUD_MODEL"]
ASKED = (1, 2, 4, 0)  # 0: not said
FLOOR = 0.45
PROMPT, GENERATE, STREAMS = 256, 48, 8
CLIENTS, REQUESTS, TOKENS_IN, TOKENS_OUT = 8, 16, 165, 64
START_LIMIT_S, RUN_LIMIT_S = 120, 600


def asked_text(asked):
    return f"--threads {asked}" if asked else "default"


def flags(asked):
    return ["--threads", str(asked)] if asked else []


def expected_threads(cores, asked, cpus):
    """What is not said is rounded down (never throttled), what is said is cut to what can run at all."""
    most = min(cpus, -int(-cores // 1))
    return min(asked, most) if asked else max(1, min(cpus, int(cores)))


def bench(group, asked):
    """Tokens per second by what was measured; threads and why."""
    command = [BIN, "bench", MODEL, "--json", "--no-limits", "--repeats", "1", "--prompt", str(PROMPT),
               "--generate", str(GENERATE), "--streams", f"1,{STREAMS}", *flags(asked)]
    run = subprocess.run(group.command(command), capture_output=True, text=True, timeout=RUN_LIMIT_S)
    if run.returncode != 0:
        sys.exit(f"spud bench failed: {run.stderr[-500:]}")
    report = json.loads(run.stdout)
    rates = {f"bench {row['what']}": row["tokens_per_s"] for row in report["results"]}
    return rates, report["threads"], report["threads_reason"]


class Served:
    """A spud serve process under the quota; its log is read as it comes."""

    def __init__(self, group, asked):
        command = [BIN, "serve", MODEL, "--port", "0", "--json", "--ctx", "512", "--max-sequences", str(CLIENTS),
                   *flags(asked)]
        self.process = subprocess.Popen(group.command(command), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.log = []
        self.reader = threading.Thread(target=lambda: self.log.extend(self.process.stderr), daemon=True)
        self.reader.start()
        timer = threading.Timer(START_LIMIT_S, self.process.kill)
        timer.start()
        line = self.process.stdout.readline()
        timer.cancel()
        if not line:
            sys.exit("spud serve did not start:\n" + "".join(self.log[-5:]))
        self.port = json.loads(line)["port"]

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.reader.join(10)

    def threads_logged(self):
        """(number, why) of the start-up line."""
        for line in self.log:
            if found := re.search(r'threads chosen threads=(\d+) why="?([^"\n]+)', line):
                return int(found[1]), found[2]
        return None, "nothing in the log"


def serve(group, asked, seed):
    """Output tokens per second of a closed loop of clients; threads and why, from the log."""
    server = Served(group, asked)
    try:
        run = subprocess.run([BIN, "load", f"http://127.0.0.1:{server.port}", "--json", "--clients", str(CLIENTS),
                              "--requests", str(REQUESTS), "--prompt", str(TOKENS_IN), "--output", str(TOKENS_OUT),
                              "--duration", "10min", "--seed", str(seed)],
                             capture_output=True, text=True, timeout=RUN_LIMIT_S)
    finally:
        server.close()
    report = json.loads(run.stdout)
    if run.returncode != 0 or report["failures"]:
        sys.exit(f"spud load failed: {run.stderr[-500:]} {report.get('failures')}")
    return ({"serve": report["output_tokens_per_s"]}, *server.threads_logged())


def check_numbers(backend, cpus):
    """Names of checks and whether they hold."""
    checks = {}
    for cores in (1, 1.5, 2):
        group = backend.group(cores)
        for asked in ASKED:
            server = Served(group, asked)
            server.close()
            number, why = server.threads_logged()
            checks[f"{cores:g} cores, {asked_text(asked)}: {number} threads ({why})"] = \
                number == expected_threads(cores, asked, cpus)
    return checks


def measure(backend, repeats, began):
    """{(cores, asked): {what: [rates]}}"""
    rates, done, total = {}, 0, repeats * 2 * len(ASKED)
    for turn in range(repeats):
        for asked in ASKED:
            for cores in ((1, 2) if turn % 2 == 0 else (2, 1)):
                group, kept = backend.group(cores), rates.setdefault((cores, asked), {})
                for run in (bench(group, asked), serve(group, asked, 1 + turn)):
                    for what, rate in run[0].items():
                        kept.setdefault(what, []).append(rate)
                done += 1
                print(f"  {done} of {total}, {time.monotonic() - began:.0f} s", file=sys.stderr, flush=True)
    return rates


def judge_rates(rates):
    """Rows for the table: one core with each --threads beside two cores as chosen by itself."""
    rows = []
    for what in rates[(2, 0)]:
        two = statistics.median(rates[(2, 0)][what])
        for asked in ASKED:
            one = statistics.median(rates[(1, asked)][what])
            rows.append({"what": what, "threads": asked_text(asked), "one_core": one, "two_cores": two,
                         "two_cores_same_threads": statistics.median(rates[(2, asked)][what]),
                         "ratio": one / two, "floor": FLOOR, "ok": one / two >= FLOOR})
    return rows


def print_rows(rows):
    print(f"{'tokens/s':18} {'one core with':14} {'':>8} {'two cores':>10} {'same threads':>13} {'ratio':>6} {'floor':>6}")
    for r in rows:
        print(f"{r['what']:18} {r['threads']:14} {r['one_core']:8.0f} {r['two_cores']:10.0f} "
              f"{r['two_cores_same_threads']:13.0f} {r['ratio']:6.2f} {r['floor']:6.2f} {'' if r['ok'] else 'missed'}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only-numbers", action="store_true", help="which threads are chosen and why; no rates")
    parser.add_argument("--json", action="store_true", help="the table as JSON on standard output")
    options = parser.parse_args()
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))  # quotas do not bind real-time programs
    cpus, began = len(os.sched_getaffinity(0)), time.monotonic()
    backend, tried = cpu_quota.find() if cpus >= 2 else (None, [f"{cpus} CPU is too few"])
    if backend is None:
        why = f"no CPU quota can be set here ({'; '.join(tried)})"
        print(json.dumps({"skipped": why, "results": []}) if options.json else f"skipped: {why}\n0 passed, 0 failed, "
              "1 skipped")
        return 0
    out = sys.stderr if options.json else sys.stdout
    rows = []
    try:
        checks = check_numbers(backend, cpus)
        if not options.only_numbers:
            rows = judge_rates(measure(backend, options.repeats, began))
    finally:
        backend.close()
    if options.json:
        print(json.dumps({"quota_by": backend.name, "repeats": options.repeats, "results": rows,
                          "numbers": [{"what": name, "ok": ok} for name, ok in checks.items()]}, indent=1))
    elif rows:
        print_rows(rows)
    checks |= {f"{r['what']}, one core with {r['threads']}: {r['ratio']:.2f} of two": r["ok"] for r in rows}
    for name, ok in checks.items():
        print(f"{'ok  ' if ok else 'FAIL'} {name}", file=out)
    print(f"{sum(checks.values())} passed, {len(checks) - sum(checks.values())} failed (quota by {backend.name})",
          file=out)
    return not all(checks.values())


sys.exit(main())
