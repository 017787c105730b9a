# SPDX-License-Identifier: Apache-2.0
"""tools/check_layers.py against a small made-up tree, broken in one way per test."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CHECK = pathlib.Path(__file__).resolve().parents[2] / "tools" / "check_layers.py"
SPDX = "// SPDX-License-Identifier: Apache-2.0\n"
TREE = {
    "CMakeLists.txt": "set(SPUD_MODULES\n    base  # lowest\n    net app)\n",
    "src/base/CMakeLists.txt": "spud_module(base HEADERS a.hpp)\n",
    "src/base/a.hpp": SPDX,
    "src/base/internal/secret.hpp": SPDX,
    "src/net/CMakeLists.txt": "spud_module(net\n  DEPS base\n  HEADERS n.hpp)\n",
    "src/net/n.hpp": SPDX + '#include "base/a.hpp"\n#include <vector>\n',
    "src/app/CMakeLists.txt": "spud_module(app DEPS net TEST_DEPS base HEADERS p.hpp)\n",
    "src/app/p.hpp": SPDX + '#include "net/n.hpp"\n',
    "src/app/p_test.cpp": SPDX + '#include "base/a.hpp"\n',
}


class CheckLayers(unittest.TestCase):
    def check(self, **changes):
        """Exit code and output for TREE with files changed; names spelt with __ for / and _dot_."""
        tree = dict(TREE)
        tree.update({name.replace("__", "/").replace("_dot_", "."): text for name, text in changes.items()})
        with tempfile.TemporaryDirectory() as folder:
            for name, text in tree.items():
                path = pathlib.Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
            run = subprocess.run([sys.executable, "-B", str(CHECK), "--root", folder], capture_output=True, text=True)
        return run.returncode, run.stdout

    def assert_refused(self, words, **changes):
        code, out = self.check(**changes)
        self.assertEqual(code, 1, out)
        self.assertIn(words, out)
        self.assertRegex(out, re.compile(r" 1 problems$", re.MULTILINE))

    def test_accepts_a_clean_tree(self):
        code, out = self.check()
        self.assertEqual(code, 0, out)

    def test_refuses_an_include_that_deps_do_not_name(self):
        self.assert_refused("app does not name base in its DEPS",
                            src__app__p_dot_hpp=SPDX + '#include "base/a.hpp"\n')

    def test_refuses_an_upward_dependency(self):
        self.assert_refused("which is in a layer above it",
                            src__base__CMakeLists_dot_txt="spud_module(base DEPS net HEADERS a.hpp)\n",
                            src__net__CMakeLists_dot_txt="spud_module(net HEADERS n.hpp)\n",
                            src__net__n_dot_hpp=SPDX)

    def test_names_a_circle(self):
        _, out = self.check(src__base__CMakeLists_dot_txt="spud_module(base DEPS net HEADERS a.hpp)\n")
        self.assertRegex(out, r"circle: (base -> net -> base|net -> base -> net)")

    def test_refuses_another_modules_internals(self):
        self.assert_refused("is internal to base", src__net__n_dot_hpp=SPDX + '#include "base/internal/secret.hpp"\n')

    def test_refuses_a_detached_coroutine(self):
        self.assert_refused("TaskGroup", src__net__n_dot_cpp=SPDX + "auto x = asio::detached;\n")

    def test_does_not_read_comments(self):
        code, out = self.check(src__net__n_dot_cpp=SPDX + "// never asio::detached\n")
        self.assertEqual(code, 0, out)

    def test_refuses_a_standard_header_in_an_instruction_set_file(self):
        self.assert_refused("<vector> in an instruction-set file",
                            src__kernels__kernels_avx2_dot_cpp=SPDX + "#include <vector>\n",
                            src__kernels__CMakeLists_dot_txt="spud_module(kernels)\n",
                            CMakeLists_dot_txt="set(SPUD_MODULES base net app kernels)\n")

    def test_wants_the_licence_line(self):
        self.assert_refused("SPDX", src__net__n_dot_cpp="int x;\n")


if __name__ == "__main__":
    unittest.main()
