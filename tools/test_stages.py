# SPDX-License-Identifier: Apache-2.0
"""The stages of tools/test: what is built, run and checked, in which order, and how it is counted.

Each stage runs one or more commands, writes their output to build/test-logs/<stage>.log, and ends
with counts: test cases where its runner reports them, one for a check that only passes or fails. A
stage whose need failed is not run and counts as failed. Nothing here depends on how fast the
machine is.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "test-logs"
JOBS = len(os.sched_getaffinity(0))
MODELS = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "spud" / "models"
# What the tests are told: where models are, and which program the suites of servers start.
TEST_ENVIRONMENT = {"SPUD_MODELS": os.environ.get("SPUD_MODELS", str(MODELS)),
                    "SPUD_BIN": str(ROOT / "build" / "release" / "bin" / "spud")}
HEARTBEAT_S = 30
TAIL_LINES = 60


@dataclasses.dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    notes: list = dataclasses.field(default_factory=list)  # why something was skipped


def one(exit_code):
    """A check that has no cases of its own: passed or failed."""
    return Counts(passed=int(exit_code == 0), failed=int(exit_code != 0))


def counts_from_junit(path):
    """What ctest wrote; each GoogleTest case is one test there."""
    counts = Counts()
    for case in xml.etree.ElementTree.parse(path).getroot().iter("testcase"):
        status = case.get("status")
        if status == "run":
            counts.passed += 1
        elif status in ("notrun", "disabled") and case.find("failure") is None:
            counts.skipped += 1
            out = case.findtext("system-out") or ""
            reason = re.search(r"Skipped\s*\n(.*)", out)
            counts.notes.append(f"{case.get('name')}: {reason[1].strip() if reason else 'not run'}")
        else:
            counts.failed += 1
    return counts


def counts_from_text(text):
    """From the last line that says 'N passed' or 'N failed' (pytest's, or our own scripts')."""
    for line in reversed(text.splitlines()):
        found = {word: int(n) for n, word in re.findall(r"(\d+) (passed|failed|skipped|error)", line)}
        if "passed" in found or "failed" in found:
            return Counts(found.get("passed", 0), found.get("failed", 0) + found.get("error", 0),
                          found.get("skipped", 0))
    return None


class Run:
    """Runs commands with their output in a log; says every half minute where they are."""

    def __init__(self, name):
        self.path = LOGS / f"{name}.log"
        self.path.write_bytes(b"")

    def __call__(self, *command, limit_s=3600):
        with open(self.path, "ab") as log:
            log.write(f"$ {' '.join(map(str, command))}\n".encode())
            log.flush()
            child = subprocess.Popen([str(word) for word in command], cwd=ROOT, stdin=subprocess.DEVNULL,
                                     stdout=log, stderr=subprocess.STDOUT, env={**os.environ, **TEST_ENVIRONMENT})
            began = time.monotonic()
            try:
                while True:
                    try:
                        return child.wait(HEARTBEAT_S)
                    except subprocess.TimeoutExpired:
                        print(f"   {time.monotonic() - began:5.0f} s  {self.last_line()}", flush=True)
                        if time.monotonic() - began > limit_s:
                            log.write(f"\nstopped: it took longer than {limit_s} s\n".encode())
                            return 124
            finally:
                if child.poll() is None:
                    child.terminate()
                    child.wait()

    def text(self):
        return self.path.read_text(errors="replace")

    def last_line(self):
        lines = self.text().strip().splitlines()
        return lines[-1][:100] if lines else ""


def configure_and_build(run, preset, *targets):
    code = run("cmake", "--preset", preset)
    wanted = [word for target in targets for word in ("--target", target)]
    return code or run("cmake", "--build", "--preset", preset, "--parallel", JOBS, *wanted)


def ctest(run, preset, *selection):
    report = LOGS / f"ctest-{preset}.xml"
    report.unlink(missing_ok=True)
    code = run("ctest", "--test-dir", f"build/{preset}", "--output-on-failure", "--parallel", JOBS,
               "--output-junit", report, *selection)
    if not report.exists():
        return one(code or 1)
    counts = counts_from_junit(report)
    if code != 0 and counts.failed == 0:
        counts.failed = 1  # ctest itself failed, for example while asking a program for its cases
    return counts


def script(run, path, *arguments):
    """A test script that prints 'N passed, N failed' at its end."""
    if not (ROOT / path).exists():
        return Counts(failed=1, notes=[f"{path} is missing"])
    code = run("bash", path, *arguments)
    counts = counts_from_text(run.text()) or one(code)
    if code != 0 and counts.failed == 0:
        counts.failed = 1
    return counts


def stage_models(run):
    counts = Counts()
    for name in ("smollm2-135m-instruct", "gemma-3-270m"):
        if run("python3", "tools/fetch-model", name, limit_s=1800) == 0:
            counts.passed += 1
        else:  # without network the tests that need the model skip and say so
            counts.skipped += 1
            counts.notes.append(f"fetching {name}: {run.last_line()}")
    return counts


def stage_headers(run):
    return one(run("cmake", "--build", "--preset", "release", "--parallel", JOBS,
                   "--target", "all_verify_interface_header_sets"))


def stage_sanitizers(run):
    code = configure_and_build(run, "asan")
    return ctest(run, "asan", "--label-regex", "^fast$") if code == 0 else one(code)


@dataclasses.dataclass(frozen=True)
class Stage:
    name: str
    what: str
    action: object  # (Run) -> Counts
    needs: tuple = ()
    quick: bool = False


STAGES = (
    Stage("format", "clang-format", lambda run: one(run("tools/check_format")), quick=True),
    Stage("layers", "include graph and word rules", lambda run: one(run("python3", "tools/check_layers.py")),
          quick=True),
    Stage("models", "fetch the models the tests use", stage_models),
    Stage("build", "release build", lambda run: one(configure_and_build(run, "release")), quick=True),
    Stage("tests", "every test, release build", lambda run: ctest(run, "release"), needs=("build",), quick=True),
    Stage("headers", "every header compiles alone", stage_headers, needs=("build",)),
    Stage("tidy", "clang-tidy", lambda run: one(run("tools/check_tidy", "--all", "--build", "build/release")),
          needs=("build",)),
    Stage("sanitizers", "fast tests under ASan and UBSan", stage_sanitizers),
    Stage("conformance", "the openai client against spud serve",
          lambda run: script(run, "tests/conformance/run.sh"), needs=("build",)),
    Stage("hostile", "hostile clients against spud serve",
          lambda run: script(run, "tests/hostile/run.sh"), needs=("build",)),
    Stage("exactness", "the same answers under load as alone",
          lambda run: script(run, "tests/exactness/run.sh"), needs=("build",)),
    Stage("quota", "how many threads are chosen under a CPU quota",
          lambda run: script(run, "tests/quota/run.sh", "--only-numbers"), needs=("build",)),
    Stage("memory", "resident memory at full load within --memory",
          lambda run: script(run, "tests/memory/run.sh", "--seconds", "10"), needs=("build",)),
    Stage("clock", "a wall clock that jumps by an hour is noticed by nobody",
          lambda run: script(run, "tests/clock_steps/run.sh"), needs=("build",)),
    Stage("soak", "a short time at full load with nothing left over",
          lambda run: script(run, "tests/soak/run.sh", "--seconds", "30"), needs=("build",)),
)


def duration(seconds):
    return f"{seconds:.0f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:02.0f} s"


def run_stage(stage, broken):
    print(f"== {stage.name}: {stage.what}", flush=True)
    missing = [need for need in stage.needs if need in broken]
    if missing:
        return Counts(failed=1, notes=[f"not run: stage {missing[0]} failed"]), 0.0
    began = time.monotonic()
    run = Run(stage.name)
    try:
        counts = stage.action(run)
    except OSError as error:
        counts = Counts(failed=1, notes=[str(error)])
    seconds = time.monotonic() - began
    if counts.failed:
        print(f"-- {stage.name} failed; the end of {run.path.relative_to(ROOT)}:")
        print("\n".join(run.text().splitlines()[-TAIL_LINES:]), flush=True)
    print(f"   {counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped, {duration(seconds)}",
          flush=True)
    return counts, seconds


def print_summary(results):
    print(f"\n{'stage':12} {'passed':>7} {'failed':>7} {'skipped':>8} {'time':>13}")
    for stage, counts, seconds in results:
        print(f"{stage.name:12} {counts.passed:7} {counts.failed:7} {counts.skipped:8} {duration(seconds):>13}")
    notes = [f"{stage.name}: {note}" for stage, counts, _ in results for note in counts.notes]
    if notes:
        print("\nskipped or not run:")
        for note in notes[:40]:
            print(f"  {note}")
        if len(notes) > 40:
            print(f"  and {len(notes) - 40} more")
    print(f"\ntotal time {duration(sum(seconds for _, _, seconds in results))}")


def main():
    names = [stage.name for stage in STAGES]
    parser = argparse.ArgumentParser(prog="tools/test", description="Build spud, run every test and check.")
    parser.add_argument("--quick", action="store_true", help="release build, its tests and the cheap checks")
    parser.add_argument("--only", nargs="+", choices=names, metavar="STAGE", help="these stages")
    parser.add_argument("--skip", nargs="+", choices=names, default=[], metavar="STAGE", help="not these stages")
    parser.add_argument("--list", action="store_true", help="list the stages and stop")
    options = parser.parse_args()
    if options.list:
        for stage in STAGES:
            print(f"{stage.name:12} {stage.what}")
        return 0
    chosen = [s for s in STAGES if (not options.only or s.name in options.only) and s.name not in options.skip
              and (s.quick or not options.quick)]
    LOGS.mkdir(parents=True, exist_ok=True)
    results, broken = [], set()
    for stage in chosen:
        counts, seconds = run_stage(stage, broken)
        if counts.failed:
            broken.add(stage.name)
        results.append((stage, counts, seconds))
    print_summary(results)
    passed = sum(counts.passed for _, counts, _ in results)
    failed = sum(counts.failed for _, counts, _ in results)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
