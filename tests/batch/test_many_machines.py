# SPDX-License-Identifier: Apache-2.0
"""Runs the commands and the program of docs/many-machines.md."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest
from PIL import Image

from tests.support import processes
from tests.support.machines import ROOT, SRCNN, child, environment, photos

PAGE = (ROOT / "docs" / "many-machines.md").read_text()
BLOCKS = re.findall(r"```(\w*)\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = [line for kind, text in BLOCKS if not kind for line in text.replace("\\\n", "").splitlines()]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(SRCNN / "srcnn3.onnx", tmp_path)
    photos(tmp_path / "photos", 12, extension="jpg")
    return tmp_path


def run(program: str, command: str, folder: Path, variables: Mapping[str, str] | None = None) -> None:
    words = shlex.split(command)
    assert words[0] == "polyop"
    done = subprocess.run(
        [program, *words[1:]],
        cwd=folder,
        env=variables or processes.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr[-3000:]}"


def results_are_there(folder: Path) -> None:
    written = sorted((folder / "large").rglob("*.png"))
    assert [p.parent.name + p.stem for p in written] == [f"{i // 10:03}{i:05}" for i in range(12)]
    assert Image.open(written[0]).size == (48, 40)


def test_commands_of_the_page(program: str, folder: Path) -> None:
    here = [command for command in COMMANDS if "--ray" not in command]
    assert len(here) == len(COMMANDS) - 1 == 2
    for command in here:
        run(program, command, folder)
    results_are_there(folder)
    assert (folder / "repository" / "srcnn3" / "config.pbtxt").is_file()


@pytest.mark.slow
def test_cluster_of_the_page(program: str, folder: Path) -> None:
    (command,) = [command for command in COMMANDS if "--ray" in command]
    run(program, command, folder, environment("ray"))
    results_are_there(folder)


@pytest.mark.slow
def test_program_of_the_page(folder: Path) -> None:
    (program,) = [text for kind, text in BLOCKS if kind == "python"]
    child("ray", f"import os; os.chdir({str(folder)!r})\n" + program + "assert large.count() == 12\n")
    assert list((folder / "large").glob("*.parquet"))
