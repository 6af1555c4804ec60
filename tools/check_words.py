#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the words and the width of everything that git tracks: identifiers, comments, messages and pages.

Prints `FILE:LINE: WORD -> THE WORD TO USE` for each retired word, and `FILE:LINE: COLUMNS columns` for each line of prose that
is wider than 120 columns. Prose is Markdown outside of tables and code blocks, comments and docstrings. Exits with 1 if there
is any.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAX_COLUMNS = 120

# Patterns of words that confuse readers of this field, and the words to use instead. Plain words are welcome.
# Identifiers are read as snake_case (`BoxOfSpace` as `box_of_space`). Case is ignored. A space also matches a line break
# with the comment mark after it, `~` also a hyphen or an underscore. A pattern matches whole words.
RETIRED = {
    "pictures?": "image",
    "turned": "rotated",
    "box(?:es)?~of~space|boxes~in~space": "3-D box, Box3d",
    "k_(?:most|least)": "kMax, kMin",
    "wanted|wants": "expected, required, requested",
    "choose_meaning|meaning\\.(?:h|cc)": "ResolveNode, node_resolution.h",
    "of one's own|of (?:its|their|our) own(?=\\s*(?:[^a-z\\s]|(?:and|are|as|at|for|in|is|on|or|that|to|with)[ ,]))": "own, separate",
    "(?:hang|hangs|hanging|hung)~on": "depends on",
    "by luck|on luck": "non-deterministic",
    "in~turns": "interleaved",
    "stand[-_]ins?|stands? in (?:the|its|their) place": "override, replacement, replaces",
    "whole_?files?": "atomic write, AtomicFile",
    "so many": "a count (at most so many: max)",
    "whole numbers?": "integer",
    "hostile": "untrusted",
}
# Uses of these words that are fine.
ALLOWED = "turned (?:into|off|on|out|down|to)"

# Licences, measured data, pinned packages, and this list of words are not the project's prose.
SKIPPED = re.compile(
    r"LICENSE|THIRD_PARTY_LICENSES|bench/results/|fuzz/corpus/|docs/images/|requirements/|tools/check_words\.py$"
)
UNWRAPPED = re.compile(r"docs/operators/")  # generated: a paragraph is one line
SLASHES = (".cc", ".h", ".cu", ".cpp", ".js")
HASHES = (".sh", ".cmake", ".yml", ".yaml", ".toml", "CMakeLists.txt", "Makefile")


def compiled(pattern: str) -> re.Pattern[str]:
    gap = r"(?: |\n[ \t]*(?:(?://+|#+)[ \t])?[ \t]*)"
    pattern = re.sub(r"(\[.*?\])| ", lambda match: match[1] or gap, pattern)
    pattern = pattern.replace("~", f"(?:{gap}|[-_])")
    return re.compile(f"(?<![a-z])(?:{pattern})(?![a-z])")


PATTERNS = [(compiled(pattern), use) for pattern, use in RETIRED.items()]
FINE = compiled(ALLOWED)


def tracked() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [name for name in done.stdout.split("\0") if name and not SKIPPED.match(name) and (ROOT / name).is_file()]


def words(text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, retired word and the words to use instead."""
    text = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", text).lower()
    fine = [match.span() for match in FINE.finditer(text)]
    for pattern, use in PATTERNS:
        for match in pattern.finditer(text):
            if any(begin <= match.start() < end for begin, end in fine):
                continue
            yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split()), use


def prose_of_python(text: str) -> Iterator[int]:
    """Yields the lines of comments and docstrings."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0]
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield from range(node.lineno, (node.end_lineno or node.lineno) + 1)


def prose(name: str, text: str) -> Iterator[int]:
    """Yields the numbers of the lines that hold prose."""
    lines = text.splitlines()
    if name.endswith(".md"):
        fenced = False
        for number, line in enumerate(lines, 1):
            fence = line.lstrip().startswith("```")
            fenced ^= fence
            if not fenced and not fence and not line.lstrip().startswith(("|", "![", "<img")):
                yield number
    elif name.endswith(".py"):
        yield from prose_of_python(text)
    else:
        mark = "//" if name.endswith(SLASHES) else "#" if name.endswith(HASHES) else None
        yield from (number for number, line in enumerate(lines, 1) if mark and line.lstrip().startswith(mark))


def findings(name: str, text: str) -> Iterator[tuple[int, str, str]]:
    """Yields line, kind and message of each finding of a file."""
    for number, word, use in words(text):
        yield number, word, f"{word} -> {use}"
    if not UNWRAPPED.match(name):
        lines = text.splitlines()
        for number in dict.fromkeys(prose(name, text)):
            if (columns := len(lines[number - 1])) > MAX_COLUMNS:
                yield number, "columns", f"{columns} columns, expected at most {MAX_COLUMNS}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", help="files and folders to check (default: all)")
    parser.add_argument("--counts", action="store_true", help="print counts per folder and per word instead of lines")
    options = parser.parse_args()
    folders: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    for name in tracked():
        if options.paths and not any(name == p or name.startswith(p.rstrip("/") + "/") for p in options.paths):
            continue
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except UnicodeDecodeError:  # an image
            continue
        in_name = [(1, word, f"name of the file: {word} -> {use}") for _, word, use in words(name)]
        for number, kind, message in sorted(in_name + list(findings(name, text))):
            folders[name.split("/")[0]] += 1
            kinds[kind] += 1
            if not options.counts:
                print(f"{name}:{number}: {message}")
    if options.counts:
        for title, counts in (("folder", folders), ("word", kinds)):
            print(f"{title}:", ", ".join(f"{key} {count}" for key, count in counts.most_common()))
    print(f"{folders.total()} findings" if folders else "no retired word, no prose wider than 120 columns")
    return int(bool(folders))


if __name__ == "__main__":
    sys.exit(main())
