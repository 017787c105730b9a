#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that the include graph is the one the build files state, and a few rules beside it.

A layering that only a document states decays. Linking enforces part of it (DEPS become link
dependencies), but a header-only use slips through. This compares every `#include "x/y.hpp"` with
the DEPS of the including folder's spud_module(), forbids another module's internal/ folder, wants
DEPS to point only to modules earlier in SPUD_MODULES and free of cycles, and keeps some words where
they belong (WORD_RULES). That an instruction-set file exports one symbol only is a test of kernels.

usage: check_layers.py [--root DIR]
"""

import argparse
import dataclasses
import pathlib
import re
import sys

SOURCE_SUFFIXES = {".cpp", ".hpp"}
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', re.MULTILINE)
MODULE_CALL = re.compile(r"spud_module\s*\(([^)]*)\)")
KEYWORDS = {"DEPS", "LIBS", "HEADERS", "SOURCES", "TEST_DEPS", "TEST_LIBS"}
ISA_FILE = re.compile(r"src/kernels/kernels_(?!scalar|bench|test)\w+(?<!_test)(?<!_bench)\.cpp$")
ISA_HEADERS = {"immintrin.h", "arm_neon.h", "cstddef", "cstdint"}


@dataclasses.dataclass(frozen=True)
class WordRule:
    pattern: re.Pattern
    scope: re.Pattern  # paths the rule looks at
    allowed: re.Pattern  # paths in the scope that may
    why: str


def _rule(pattern, scope, allowed, why):
    return WordRule(re.compile(pattern), re.compile(scope), re.compile(allowed), why)


TESTS = r"_(test|bench)\.cpp$|/testing/|^tests/"
WORD_RULES = [
    _rule(r"\b(asio|net)::detached\b", r"^(src|apps)/", r"/task_group(_test)?\.cpp$",
          "a coroutine nobody waits for; spawn it through TaskGroup"),
    _rule(r"#\s*include\s*<boost/beast", r"^(src|apps|tests)/", r"^src/http/",
          "Beast is included in src/http/ only"),
    _rule(r"\b(std::)?getenv\s*\(", r"^src/", r"^src/(config|console)/|" + TESTS,
          "the environment is read in config/ and console/ only"),
    _rule(r"std::(cout|cerr|printf|puts)\b|std::fp(rintf|uts)\s*\(\s*(stdout|stderr)", r"^src/",
          r"^src/base/check\.cpp$|^src/console/|" + TESTS, "library code does not print"),
    _rule(r"\bstd::(exit|quick_exit|_Exit)\s*\(", r"^src/", TESTS, "library code does not exit"),
]


def strip_comments(text):
    """The text with comments blanked, line numbers kept; string literals stay."""
    pattern = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"', re.DOTALL)
    return pattern.sub(
        lambda m: m[0] if m[0].startswith('"') else "\n" * m[0].count("\n"), text)


@dataclasses.dataclass
class Module:
    name: str
    folder: pathlib.PurePosixPath  # below src/
    deps: list
    test_deps: list


def parse_module(body, folder):
    words = re.sub(r"#[^\n]*", "", body).split()
    lists, current = {key: [] for key in KEYWORDS}, None
    for word in words[1:]:
        if word in KEYWORDS:
            current = word
        elif current:
            lists[current].append(word)
    return Module(words[0], folder, lists["DEPS"], lists["TEST_DEPS"])


class Checker:
    def __init__(self, root):
        self.root = root
        self.problems = []
        self.modules = {}
        self.order = self._read_order()

    def problem(self, place, text):
        self.problems.append(f"{place}: {text}")

    def _read_order(self):
        text = re.sub(r"#[^\n]*", "", (self.root / "CMakeLists.txt").read_text())
        match = re.search(r"set\(SPUD_MODULES([^)]*)\)", text)
        return match[1].split() if match else []

    def read_modules(self):
        for path in sorted((self.root / "src").rglob("CMakeLists.txt")):
            folder = pathlib.PurePosixPath(path.parent.relative_to(self.root / "src").as_posix())
            for body in MODULE_CALL.findall(re.sub(r"#[^\n]*", "", path.read_text())):
                module = parse_module(body, folder)
                self.modules[module.name] = module

    def rank(self, module):
        top = module.folder.parts[0]
        return self.order.index(top) if top in self.order else None

    def check_deps(self):
        for module in self.modules.values():
            place = f"src/{module.folder}/CMakeLists.txt"
            if self.rank(module) is None:
                self.problem(place, f"module '{module.name}' is not in SPUD_MODULES of CMakeLists.txt")
                continue
            for dep in module.deps + module.test_deps:
                other = self.modules.get(dep)
                if other is None:
                    self.problem(place, f"names a module '{dep}' that does not exist")
                elif self.rank(other) is not None and self.rank(other) > self.rank(module):
                    self.problem(place, f"'{module.name}' depends on '{dep}', which is in a layer above it")
        for cycle in self.find_cycles():
            self.problem("src", "modules depend on each other in a circle: " + " -> ".join(cycle))

    def find_cycles(self):
        state, stack, cycles = {}, [], []

        def visit(name):
            state[name] = "open"
            stack.append(name)
            for dep in self.modules[name].deps:
                if dep not in self.modules:
                    continue
                if state.get(dep) == "open":
                    cycles.append(stack[stack.index(dep):] + [dep])
                elif dep not in state:
                    visit(dep)
            stack.pop()
            state[name] = "done"

        for name in self.modules:
            if name not in state:
                visit(name)
        return cycles

    def owner(self, path):
        """The module whose folder holds `path` (below src/): the deepest one."""
        best = None
        for module in self.modules.values():
            if module.folder in path.parents and (
                    best is None or len(module.folder.parts) > len(best.folder.parts)):
                best = module
        return best

    def sources(self):
        for top in ("src", "apps", "tests", "bench"):
            if (self.root / top).is_dir():
                for path in sorted((self.root / top).rglob("*")):
                    if path.suffix in SOURCE_SUFFIXES and path.is_file():
                        yield path

    def check_file(self, path):
        name = path.relative_to(self.root).as_posix()
        text = path.read_text(errors="replace")
        if not text.startswith("// SPDX-License-Identifier: Apache-2.0\n"):
            self.problem(f"{name}:1", "the first line must be // SPDX-License-Identifier: Apache-2.0")
        code = strip_comments(text)
        for match in INCLUDE.finditer(code):
            line = code.count("\n", 0, match.start(1) if match[1] else match.start(2)) + 1
            if match[1]:
                self.check_include(f"{name}:{line}", name, match[1])
            if ISA_FILE.search(name):
                self.check_isa_include(f"{name}:{line}", match)
        for rule in WORD_RULES:
            if rule.scope.search(name) and not rule.allowed.search(name):
                for match in rule.pattern.finditer(code):
                    line = code.count("\n", 0, match.start()) + 1
                    self.problem(f"{name}:{line}", f"'{match[0].strip()}': {rule.why}")

    def check_isa_include(self, place, match):
        if match[2] and match[2] not in ISA_HEADERS:
            self.problem(place, f"<{match[2]}> in an instruction-set file: its inline functions would be "
                                "compiled for this machine and linked for all")

    def check_include(self, place, name, target):
        included = pathlib.PurePosixPath(target)
        if not name.startswith("src/"):
            owner = self.owner(included)
            if owner and "internal" in included.parts and not name.startswith("tests/"):
                self.problem(place, f'"{target}" is internal to {owner.name}')
            return
        own = self.owner(pathlib.PurePosixPath(name).relative_to("src"))
        if own is None:
            self.problem(place, "the file belongs to no module")
            return
        owner = self.owner(included)
        if owner is None:
            self.problem(place, f'"{target}" names no module; write the path from src/')
            return
        if owner is own:
            return
        is_test = re.search(TESTS, name) is not None
        allowed = own.deps + (own.test_deps if is_test else [])
        if owner.name not in allowed:
            self.problem(place, f'"{target}": {own.name} does not name {owner.name} in its '
                                + ("DEPS or TEST_DEPS" if is_test else "DEPS"))
        if "internal" in included.parts:
            self.problem(place, f'"{target}" is internal to {owner.name}')


def main():
    parser = argparse.ArgumentParser(description="Check layers and a few rules beside them.")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parent.parent)
    options = parser.parse_args()
    checker = Checker(options.root.resolve())
    checker.read_modules()
    checker.check_deps()
    count = 0
    for path in checker.sources():
        checker.check_file(path)
        count += 1
    for problem in checker.problems:
        print(problem)
    print(f"check_layers: {count} files, {len(checker.modules)} modules, "
          f"{len(checker.problems)} problems")
    return 1 if checker.problems else 0


if __name__ == "__main__":
    sys.exit(main())
