#!/usr/bin/env python3
"""Checks that inclusion goes one way between the rooms of the house: core <- kernels <- families <- ops, adapters from core.

Prints each #include that goes against it, and every circle between folders; exits with 1 if there is any.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r'^\s*#\s*include "([^"]+)"', re.MULTILINE)
RAW_STRING = re.compile(r'R"(\w*)\(.*?\)\1"', re.DOTALL)  # the text of a file that polyop writes

# What the files of a room may include, beside their own folder.
MAY_INCLUDE = {
    "core": set(),
    "kernels": {"core"},
    "families": {"core", "kernels", "families"},
    "ops": {"core", "kernels", "families"},  # never another operator
    "testing": {"core", "kernels"},
    "adapters": {"core"},
    "cli": {"core", "kernels", "adapters"},
    "fuzz": {"core", "kernels", "testing"},
}
# Tests, and what several of them include, stand above what they test.
TESTS = ("_test.cc", "_test.h")
TESTS_MAY_ALSO_INCLUDE = {"testing", "kernels", "core"}


def room(path: str) -> str:
    return path.split("/", 1)[0]


def folder(path: str) -> str:
    return path.rpartition("/")[0]


def arrows(files: list[str]) -> list[tuple[str, str]]:
    """(file, included file) for every #include of the project's own files."""
    return [
        (file, included)
        for file in files
        for included in INCLUDE.findall(RAW_STRING.sub("", (ROOT / file).read_text(encoding="utf-8")))
        if room(included) in MAY_INCLUDE
    ]


def is_allowed(file: str, included: str) -> bool:
    if folder(file) == folder(included):
        return True
    if room(file) == "adapters" and folder(included) == "adapters":
        return True  # what the adapters share
    if room(file) == room(included) and room(file) in ("cli", "core", "testing"):
        return True
    allowed = MAY_INCLUDE[room(file)]
    if file.endswith(TESTS):
        allowed = allowed | TESTS_MAY_ALSO_INCLUDE
    return room(included) in allowed


def circles(edges: list[tuple[str, str]]) -> list[list[str]]:
    """Folders that include each other, directly or around corners; tests are above all."""
    graph: dict[str, set[str]] = defaultdict(set)
    for file, included in edges:
        if folder(file) != folder(included) and not file.endswith(TESTS):
            graph[folder(file)].add(folder(included))
    found: list[list[str]] = []
    done: set[str] = set()

    def walk(at: str, path: list[str]) -> None:
        if at in path:
            found.append([*path[path.index(at) :], at])
            return
        if at in done:
            return
        for to in sorted(graph[at]):
            walk(to, [*path, at])
        done.add(at)

    for start in sorted(graph):
        walk(start, [])
    return found


def main() -> int:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.cc", "*.h", "*.cu"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    )  # fmt: skip
    files = [f for f in listed.stdout.split() if room(f) in MAY_INCLUDE and (ROOT / f).is_file()]
    edges = arrows(files)
    wrong = [f'{file}: includes "{included}"' for file, included in edges if not is_allowed(file, included)]
    wrong += ["circle: " + " -> ".join(circle) for circle in circles(edges)]
    print("\n".join(wrong) if wrong else f"{len(files)} files, {len(edges)} inclusions: all go one way")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
