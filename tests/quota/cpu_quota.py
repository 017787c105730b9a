# SPDX-License-Identifier: Apache-2.0
"""Ways to run a program under a CPU quota: a control group of version 2 or 1 made by hand (root), or
a scope of systemd. Groups live below one parent with a high weight, so that other work of the machine
disturbs less, and are removed at the end. Standard library only."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import time

PERIOD_US = 100_000
REMOVAL_LIMIT_S = 10


class Group:
    """A control group with two levels: the quota is the outer one's, programs run in the inner one."""

    def __init__(self, top, files, cores):
        self.outer, self.inner = top / f"cores-{cores:g}", top / f"cores-{cores:g}" / "inner"
        self.inner.mkdir(parents=True, exist_ok=True)
        for name, text in files(int(cores * PERIOD_US)).items():
            (self.outer / name).write_text(text)

    def command(self, words):
        """The command, run inside the group."""
        return ["sh", "-c", 'echo $$ > "$0" && exec "$@"', str(self.inner / "cgroup.procs"), *words]


class Cgroups:
    """Groups below a parent of ours in one hierarchy."""

    def __init__(self, name, root, weight, files):
        self.name, self.files = name, files
        self.top = root / f"spud-quota-{os.getpid()}"
        self.top.mkdir()
        with contextlib.suppress(OSError):
            (self.top / weight[0]).write_text(weight[1])
        if (self.top / "cgroup.subtree_control").exists():
            (self.top / "cgroup.subtree_control").write_text("+cpu")

    def group(self, cores):
        return Group(self.top, self.files, cores)

    def close(self):
        """Removes all groups; a process that just ended may hold one for a moment."""
        end = time.monotonic() + REMOVAL_LIMIT_S
        for folder in sorted(self.top.rglob("*"), key=lambda p: -len(p.parts)):
            if folder.is_dir():
                remove(folder, end)
        remove(self.top, end)


class Scope:
    def __init__(self, prefix, cores):
        self.prefix = [*prefix, "-p", f"CPUQuota={100 * cores:g}%"]

    def command(self, words):
        return [*self.prefix, *words]


class Systemd:
    def __init__(self, prefix):
        self.name, self.prefix = "systemd-run", prefix

    def group(self, cores):
        return Scope(self.prefix, cores)

    def close(self):
        pass


def remove(folder, end):
    while True:
        try:
            return folder.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.05)


def mounts(kind):
    """Mount points of cgroup hierarchies with their options."""
    for line in pathlib.Path("/proc/mounts").read_text().splitlines():
        _, point, found, options, *_ = line.split()
        if found == kind:
            yield pathlib.Path(point), options.split(",")


def cgroup_v2():
    for point, _ in mounts("cgroup2"):
        if "cpu" in (point / "cgroup.controllers").read_text().split():
            with contextlib.suppress(OSError):
                (point / "cgroup.subtree_control").write_text("+cpu")
            return Cgroups("cgroup v2", point, ("cpu.weight", "10000"),
                           lambda quota: {"cpu.max": f"{quota} {PERIOD_US}"})
    return None


def cgroup_v1():
    files = lambda quota: {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota)}  # noqa: E731
    points = [point for point, options in mounts("cgroup") if "cpu" in options]
    if not points:
        point = pathlib.Path("/sys/fs/cgroup/cpu")
        point.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "cgroup", "-o", "cpu", "cgroup", point], check=True, capture_output=True)
        points = [point]
    return Cgroups("cgroup v1", points[0], ("cpu.shares", "65536"), files)


def systemd():
    if not shutil.which("systemd-run"):
        return None
    for user in ([], ["--user"]):
        prefix = ["systemd-run", *user, "--scope", "--quiet"]
        if subprocess.run([*prefix, "-p", "CPUQuota=100%", "true"], capture_output=True).returncode == 0:
            return Systemd(prefix)
    return None


def find():
    """The first way that works here, else None and what was tried."""
    tried = []
    for way in (systemd, cgroup_v2, cgroup_v1):
        try:
            if backend := way():
                return backend, tried
            tried.append(f"{way.__name__}: not here")
        except (OSError, subprocess.CalledProcessError) as error:
            tried.append(f"{way.__name__}: {error}")
    return None, tried
