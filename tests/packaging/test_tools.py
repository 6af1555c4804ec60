# SPDX-License-Identifier: Apache-2.0
"""The command line of the scripts in tools/."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
SCRIPTS = sorted(
    path.name
    for path in (ROOT / "tools").iterdir()
    if (path.suffix == ".sh" and os.access(path, os.X_OK)) or path.suffix == ".py"
)


def run(script: str, *arguments: str) -> subprocess.CompletedProcess:
    interpreter = [sys.executable] if script.endswith(".py") else []
    command = [*interpreter, str(ROOT / "tools" / script), *arguments]
    return subprocess.run(command, cwd="/", capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("script", SCRIPTS)
def test_help_describes_the_script(script: str) -> None:
    done = run(script, "--help")
    assert done.returncode == 0, done.stderr
    assert script in done.stdout.split("\n")[0]
    assert len(done.stdout) > 60


@pytest.mark.parametrize("script", SCRIPTS)
def test_unknown_options_are_refused(script: str) -> None:
    done = run(script, "--no-such-option")
    assert done.returncode == 2
    assert "error:" in done.stderr
    assert "==>" not in done.stdout, "the script did something before it read its arguments"


def test_surplus_arguments_are_refused() -> None:
    for script, *arguments in (["setup.sh", "everything"], ["deb.sh", "a", "b"], ["wheels.sh", "riscv64"]):
        assert run(script, *arguments).returncode == 2


# The bars keep this file free of the words.
RETIRED = [
    "draws a p|icture",
    "class BoxOf|Space",
    "kMo|stRois",
    "sta|nds in the\n    // place of",
    "a pool of its o|wn.",
]
PLAIN = [
    "replaces in place, by a placeholder",
    "the image made here came from a function that was asked for it, at the place that it names",
    "turned off",
    "errors of its own operators",
    "almost",
    "became",
    "remade",
]


def test_retired_words_are_found_and_plain_english_is_not() -> None:
    from check_words import words

    for text in RETIRED:
        assert list(words(text.replace("|", ""))), text
    for text in PLAIN:
        assert not list(words(text)), text


def test_wide_prose_is_found() -> None:
    from check_words import findings

    wide = "word " * 30
    assert [line for line, _, _ in findings("page.md", f"# Title\n\n{wide}\n\n| {wide} |\n")] == [3]
    assert [line for line, _, _ in findings("a.cc", f"// {wide}\nint a;  // short\n")] == [1]
    assert [line for line, _, _ in findings("a.py", f'"""Title.\n\n{wide}\n"""\nX = "{wide}"\n')] == [3]
