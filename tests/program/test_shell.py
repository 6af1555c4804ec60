# SPDX-License-Identifier: Apache-2.0
"""`polyop help`, completion scripts and manual pages, which come from the help texts."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest


def run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout


def test_help(program: str) -> None:
    assert run(program, "help", "run") == run(program, "run", "--help")
    assert run(program, "help") == run(program, "--help")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_valid(program: str, shell: str, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    script = run(program, "completion", shell)
    for command in ("inspect", "optimize", "verify"):
        assert command in script
    if shutil.which(shell) is None:
        return not_run(f"{shell} is not installed: the script was not parsed")
    path = tmp_path / "script"
    path.write_text(script)
    run(shell, "-n", str(path))


def completed(program: str, tmp_path: Path, *words: str) -> list[str]:
    """Returns what bash offers for the last word."""
    (tmp_path / "polyop").symlink_to(program)
    script = (
        'eval "$(polyop completion bash)"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _polyop; '
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    path = f"{tmp_path}:/usr/bin:/bin"
    command = ["bash", "-c", script, "bash", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={"PATH": path}, timeout=60)
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        (("polyop", "ins"), {"inspect"}),
        (("polyop", "doc"), {"doctor"}),
        (("polyop", "inspect", "--o"), {"--open", "--ops", "--onnxruntime"}),
        (("polyop", "help", "ver"), {"verify"}),
    ],
)
def test_bash_completes(program: str, tmp_path: Path, words: tuple[str, ...], offered: set[str]) -> None:
    assert set(completed(program, tmp_path, *words)) == offered


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("polyop ins", {"inspect"}),
        ("polyop inspect --o", {"--open", "--ops", "--onnxruntime"}),
        ("polyop help ver", {"verify"}),
        ("polyop inspect mod", {"model.onnx"}),
    ],
)
def test_fish_completes(
    program: str, tmp_path: Path, line: str, offered: set[str], not_run: Callable[[str], None]
) -> None:
    if shutil.which("fish") is None:
        return not_run("fish is not installed: it completed nothing")
    (tmp_path / "polyop").symlink_to(program)
    (tmp_path / "model.onnx").touch()
    done = subprocess.run(
        ["fish", "--no-config", "-c", 'polyop completion fish | source; complete -C "$argv"', line],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", "HOME": str(tmp_path)},
    )
    assert {found.split("\t")[0] for found in done.stdout.splitlines()} == offered


def test_manual_pages(program: str) -> None:
    page = run(program, "man", "run")
    assert page.startswith(".TH polyop-run 1\n")
    assert "\\-\\-letterbox" in page
    assert not any(line.startswith("'") for line in page.splitlines())
    assert run(program, "man").startswith(".TH polyop 1\n")
    done = subprocess.run([program, "man", "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
