# SPDX-License-Identifier: Apache-2.0
"""No command runs code that lies in the current folder, such as a json.py next to a downloaded model."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx.parser
import pytest
from PIL import Image

from polyop._base import isolation

MODULES = ("json", "onnx", "numpy", "typing", "runpy", "contextlib", "polyop/__init__", "importlib/__init__")
IDENTITY = '<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, h, w] x) => (float[1, 3, h, w] y) { y = Relu (x) }'
COMMANDS = (
    "doctor numpy",
    "portable m.onnx -o out/p.onnx",
    "optimize m.onnx -o out/o.onnx --shape x=1x3x4x4",
    "attach m.onnx -o out/a.onnx",
    "convert m.onnx -o out/m.xml --to openvino",
    "triton m.onnx -o out/t",
    "batch m.onnx -i a.bmp -o out/b",
    "run m.onnx -i x=a.bmp",
    "verify m.onnx --shape x=1x3x4x4 --reference openvino",
    "inspect m.onnx",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Has a model, an image, and modules that leave a file when they run."""
    onnx.save(onnx.parser.parse_model(IDENTITY), tmp_path / "m.onnx")
    Image.new("RGB", (4, 4)).save(tmp_path / "a.bmp")
    for module in MODULES:
        plant(tmp_path, module)
    return tmp_path


def plant(folder: Path, module: str) -> None:
    file = folder / f"{module}.py"
    file.parent.mkdir(exist_ok=True)
    file.write_text(f"open({str(folder / 'RAN')!r}, 'a').write({module!r})\n")


def run(folder: Path, *command: str, **variables: str) -> int:
    environment = {**os.environ, **variables}
    done = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert not (folder / "RAN").exists(), f"{command} ran {(folder / 'RAN').read_text()}"
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_runs_what_lies_in_its_folder(words: str, folder: Path, program: str) -> None:
    """An empty part of PYTHONPATH or PATH means the current folder, too."""
    paths = {"PYTHONPATH": os.pathsep, "PATH": f"{os.environ['PATH']}{os.pathsep}"}
    code = run(folder, program, *words.split(), **paths)
    assert code == (1 if words.startswith("attach") else 0)  # the model has no head


def test_the_start_without_the_current_folder(folder: Path) -> None:
    """Python 3.10 has neither -P nor PYTHONSAFEPATH: the start itself must suffice."""
    assert run(folder, *isolation.command("polyop", "--version"), PYTHONSAFEPATH="") == 0


def test_the_module_by_hand(tmp_path: Path) -> None:
    """Python itself imports `polyop` and what it needs for -m from the current folder, but polyop imports nothing."""
    for module in ("json", "onnx", "numpy", "pathlib", "typing"):
        plant(tmp_path, module)
    assert run(tmp_path, sys.executable, "-m", "polyop", "doctor", "numpy") == 0
