#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tests that the changes since COMMIT affect. Without COMMIT: the uncommitted changes, or those since the
branch left main if there are none.

Prints four lines: "cxx" and the names of C++ tests, which are also targets; "build" and the other targets that the
Python tests need; "python" and an expression for pytest's -k; "files" and the files of these tests, because collecting
all takes a minute. A test is affected if it, a file that it includes directly or indirectly, or a file of the folder
that it tests has changed.
"""

from __future__ import annotations

import argparse
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

from check_rooms import INCLUDE, ROOT, is_shared, room

SOURCES = (".cc", ".h", ".cu")
ALL_SLOW = re.compile(r"^pytestmark = .*mark\.(slow|rest)\b", re.MULTILINE)
TEST_OR_CASE = re.compile(r"(?<=def )test_\w+|(?<=\")\w+(?=\")")
SHARED_CASES = re.compile(r"^from (ops\.\w+)(?:\.cases import| import cases)", re.MULTILINE)

# The Python tests of a file or folder outside of python/: NAME of tests/*/test_NAME.py. The longest name of a file's
# folders counts. An operator's tests have its name in theirs.
PYTHON_TESTS = {
    "adapters/c": ["c", "numpy"],
    "adapters/executorch": ["executorch"],
    "adapters/jax": ["jax"],
    "adapters/onnxruntime": ["onnxruntime_adapter", "exported_nodes", "verify", "packaging"],
    "adapters/openvino": ["openvino", "random_graphs"],
    "adapters/tensorrt": ["tensorrt"],
    "adapters/torch": ["torch", "gradients", "export", "modules"],
    "adapters/tvm_ffi": ["tvm_ffi"],
    "bench": ["bench"],
    "cli": ["cli", "drawing_and_new", "verify", "main_line", "sdk"],
    "cmake": ["sdk"],
    "core": ["definition_errors", "add_operator", "onnxruntime_adapter", "torch", "exported_nodes"],
    "docs": ["docs", "guides", "tutorial"],
    "examples": ["examples", "train_example"],
    ".github": ["release"],
    "models": ["srcnn", "srcnn_files"],
    "platform": ["c", "isolation"],
    "requirements": ["tools"],
    "sdk": ["sdk", "tutorial"],
    "site": ["docs"],
    "testing": ["definition_errors", "add_operator"],
    "tools": ["tools", "touched", "rooms"],
}

# The files with a test of each operator, which has the operator's name as a parameter.
EVERY_OPERATOR = [
    "exported_nodes", "fake_kernels", "formulas", "function_bodies", "gradients", "onnx_schemas", "openvino", "signatures", "torch",
]  # fmt: skip


def git(*arguments: str) -> list[str]:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.splitlines()


def is_commit(name: str) -> bool:
    return subprocess.run(["git", "rev-parse", "-q", "--verify", name], cwd=ROOT, capture_output=True).returncode == 0


def changed_files(since: str | None) -> set[str]:
    if since is None:
        main = next(filter(is_commit, ("main", "origin/main", "HEAD")))
        return changed_files("HEAD") or changed_files(git("merge-base", "HEAD", main)[0])
    return {*git("diff", "--name-only", since), *git("ls-files", "--others", "--exclude-standard")}


def closure(changed: set[str], files: list[str]) -> set[str]:
    """Returns the changed files and all that include them. A .cc file of a room or of kernels/ counts as its header."""
    included_by: dict[str, set[str]] = defaultdict(set)
    for file in files:
        text = (ROOT / file).read_text(encoding="utf-8")
        shared = SHARED_CASES.findall(text) if file.endswith(".py") else []
        for included in [*INCLUDE.findall(text), *(f"{name.replace('.', '/')}/cases.py" for name in shared)]:
            included_by[included].add(file)
    found, todo = set(), list(changed)
    while todo:
        file = todo.pop()
        if file not in found:
            found.add(file)
            todo += included_by[file]
            if file.endswith(".cc") and (room(file) == "kernels" or is_shared(file)):
                todo.append(file.removesuffix(".cc") + ".h")
    return found


def part(file: str) -> str:
    """Returns the folder that a test covers: an operator, an adapter, what a room shares, or a top-level folder."""
    if room(file) == "ops":
        return file.rpartition("/")[0]
    return "/".join(file.split("/")[: 2 if room(file) in ("adapters", "kernels") else 1])


def cxx_tests(touched: set[str], files: list[str]) -> list[str]:
    parts = {part(file) for file in touched if file.endswith(SOURCES)}
    return sorted(Path(f).stem for f in files if f.endswith("_test.cc") and (f in touched or part(f) in parts))


def touched_operators(touched: set[str]) -> dict[str, list[str]]:
    """Returns the operators, each with the others whose names contain its name. A test that names these is theirs."""
    operators = {file.split("/")[2] for file in touched if room(file) == "ops" and not is_shared(file)}
    others = sorted({folder.name for folder in (ROOT / "ops").glob("*/*/")} - operators)
    return {name: [other for other in others if name in other] for name in sorted(operators)}


def test_names(changed: set[str], operators: dict[str, list[str]]) -> list[str]:
    """Returns the names of test files, each with a dot, so that pytest's -k takes no longer name."""
    names = {f"test_{name}." for file in changed for name in tests_of(file)}
    names |= {f"{Path(file).stem}." for file in changed if re.fullmatch(r"tests/\w+/test_\w+\.py", file)}
    return sorted(names) + ["test_docs."] * bool(operators)


def test_files() -> list[Path]:
    """Returns the files with Python tests, without those that need a GPU."""
    return [path for path in sorted((ROOT / "tests").glob("*/test_*.py")) if path.parent.name != "gpu"]


def python_files(names: list[str], operators: dict[str, list[str]]) -> list[str]:
    """Returns the files with tests of these names; of an operator, those named after it or with such a test or case."""
    required = {f"{name}py" for name in names}
    required |= {f"test_{name}.py" for name in EVERY_OPERATOR if operators}

    def has_operator(words: list[str]) -> bool:
        return any(
            name in word and not any(other in word for other in others)
            for word in words
            for name, others in operators.items()
        )

    def is_selected(path: Path) -> bool:
        text = path.read_text(encoding="utf-8")
        return not ALL_SLOW.search(text) and has_operator([path.name, *TEST_OR_CASE.findall(text)])

    return sorted(str(path.relative_to(ROOT)) for path in test_files() if path.name in required or is_selected(path))


def tests_of(file: str) -> list[str]:
    """Returns the names of the tests of a file, without those of operators."""
    if file.startswith("python/polyop/"):
        return sorted(path.stem.removeprefix("test_") for path in tests_of_module(Path(file)))
    parents = [folder for folder in PYTHON_TESTS if file == folder or file.startswith(folder + "/")]
    return PYTHON_TESTS[max(parents, key=len)] if parents else []


def tests_of_module(file: Path) -> list[Path]:
    """Returns the tests of a module of python/polyop. The tests of a room are the folder of tests/ with its name.

    The first of these that exist: tests of the room that are named after the module's folders and the module, such as
    test_optimize_grid_sample.py of optimizing/patterns/grid_sample.py; tests of the room that use the module; tests of
    other rooms that have its name; all of the room. A module outside of rooms has the tests of its name, or those that
    use it, or those of base.
    """
    tests = test_files()
    outer, *names = (part.lstrip("_") for part in file.with_suffix("").parts[2:])
    users = [path for path in tests if ".".join(file.with_suffix("").parts[1:]) in modules_named(path)]
    if not names:
        own = [path for path in tests if re.match(rf"test_{outer}(_|$)", path.stem)]
        return own or users or [path for path in tests if path.parent.name == "base"]
    room = [path for path in tests if path.parent.name == outer]
    named = room
    for name in names:
        named = [path for path in named if re.search(rf"^test_{name}(_|$)|_{name}$", path.stem)] or named
    if len(named) < len(room):
        return named
    elsewhere = [path for path in tests if re.match(rf"test_{names[-1]}(_command)?$", path.stem)]
    return [path for path in users if path in room] or elsewhere or room


@cache
def modules_named(test: Path) -> set[str]:
    """Returns the names in a test that begin with `polyop.`, and what they begin with."""
    text = test.read_text(encoding="utf-8")
    names = set(re.findall(r"\bpolyop(?:\.\w+)+", text))
    for package, listed in re.findall(r"^ *from (polyop[\w.]*) import (.*)", text, re.MULTILINE):
        names |= {f"{package}.{name}" for name in re.findall(r"\w+", listed)}
    return names | {name[: dot.start()] for name in names for dot in re.finditer(r"\.", name)}


def in_any(folder: str, files: set[str]) -> bool:
    return any(file.startswith(folder + "/") for file in files)


def main(since: str | None = None) -> None:
    changed = changed_files(since)
    listed = git("ls-files", "--cached", "--others", "--exclude-standard", ":!tests/data", ":!examples")
    files = [f for f in listed if f.endswith((*SOURCES, "/cases.py")) and (ROOT / f).is_file()]
    if not shutil.which("nvcc"):  # TensorRT's headers are installed together with CUDA
        print("nvcc was not found: not running the tests of the TensorRT adapter", file=sys.stderr)
        files = [f for f in files if not re.fullmatch(r"adapters/tensorrt/\w+_test\.cc", f)]
    touched = closure(changed, files)
    operators = touched_operators(touched)
    names = test_names(changed, operators)
    print("cxx", *cxx_tests(touched, files))
    libraries = ["polyop", "polyop_accelerator", "polyop_onnxruntime", "polyop_torch"]
    libraries += ["polyop_openvino"] * in_any("adapters/openvino", changed)
    print("build", *(libraries if names else []))
    print("python", " or ".join([*names, *(" and not ".join([name, *others]) for name, others in operators.items())]))
    print("files", *python_files(names, operators))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commit", nargs="?", help="a commit (default: see above)")
    main(parser.parse_args().commit)
