"""The program's `polyop optimize`, and its documentation page: the commands and programs run unchanged."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.deformable_attention import ATTENTION, First, inputs, write
from tests.support.exported import nodes
from tests.support.processes import ROOT, environment

PAGE = ROOT / "docs" / "optimize.md"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Writes the deformable attention of the page, with other sizes of levels."""
    folder = tmp_path_factory.mktemp("page")
    given = inputs(batch=1, queries=300, heads=8, points=(3, 4))
    return write(First(), given, folder / "detector.onnx", "torchscript")


def run(words: list[str], folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(words, env=environment(), cwd=folder, capture_output=True, text=True, check=False)


def test_documentation_page(program: str, model: Path) -> None:
    blocks = re.findall(r"```(\w*)\n(.*?)```", PAGE.read_text(), re.DOTALL)
    commands = [line for kind, text in blocks if not kind for line in text.splitlines()]
    programs = [text for kind, text in blocks if kind == "python"]
    assert len(commands) == 4
    assert len(programs) == 3
    for command in commands:
        words = shlex.split(command)
        assert words[0] == "polyop"
        done = run([program, *words[1:]], model.parent)
        assert done.returncode == 0, f"{command}\n{done.stderr}"
    for text in programs:
        done = run([sys.executable, "-c", text], model.parent)
        assert done.returncode == 0, f"{text}\n{done.stderr}"
    assert nodes(model.parent / "fast.onnx")[ATTENTION] == 1
    assert len(list(model.parent.glob("detector.polyop-*.onnx"))) == 1


def test_report(program: str, model: Path, tmp_path: Path) -> None:
    command = [program, "optimize", str(model), "-o", "fast.onnx", "--threads", "1"]
    done = run(command, tmp_path)
    assert done.returncode == 0, done.stderr
    assert re.search(r"found +where +replaced +largest difference", done.stdout)
    assert "replaced 1 of 1 found" in done.stdout
    assert re.search(r"wrote fast\.onnx \([\d.]+ kB\)", done.stdout)
    report = json.loads(run([*command, "--json"], tmp_path).stdout)
    assert report["replaced"] == {"deformable attention": 1}
    assert set(report["differences"]) == {"with polyop", "without polyop"}
    assert not report["needs_polyop"]


def test_uses_the_given_inputs(program: str, model: Path, tmp_path: Path) -> None:
    """NaN everywhere: outputs are NaN before and after, and equal."""
    np.save(tmp_path / "value.npy", np.full((1, 64, 8, 8), np.nan, np.float32))
    done = run([program, "optimize", str(model), "-o", "fast.onnx", "-i", "value=value.npy"], tmp_path)
    assert done.returncode == 0, done.stderr
    np.save(tmp_path / "value.npy", np.zeros((1, 3, 8, 8), np.float32))
    done = run([program, "optimize", str(model), "-o", "other.onnx", "-i", "value=value.npy"], tmp_path)
    assert done.returncode == 2
    assert "value" in done.stderr
    assert not (tmp_path / "other.onnx").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["none.onnx", "-o", "x.onnx"], 3, "none.onnx does not exist"),
        (["text.onnx", "-o", "x.onnx"], 3, "text.onnx is not an ONNX model, or damaged"),
        (["{model}", "-o", "no/where/x.onnx"], 3, "x.onnx cannot be written"),
        (["{model}", "-o", "x.onnx", "--shape", "z=1x2"], 1, "the model has no input 'z'; it has"),
        (["{model}", "-o", "x.onnx", "--shape", "1x2"], 2, "--shape 1x2: NAME= is missing"),
        (["{model}", "-o", "x.onnx", "--mesure"], 2, "did you mean '--measure'?"),
        (["{model}"], 2, "--output is required"),
        (["unknown.onnx", "-o", "x.onnx"], 1, "ONNX Runtime cannot run "),
    ],
)  # fmt: skip
def test_errors(program: str, model: Path, tmp_path: Path, arguments: list[str], code: int, said: str) -> None:
    (tmp_path / "text.onnx").write_text("this is no model")
    unknown = onnx.load(model)
    unknown.graph.node[-1].op_type = "NoSuchOperator"
    onnx.save(unknown, tmp_path / "unknown.onnx")
    before = sorted(os.listdir(tmp_path))
    done = run([program, "optimize", *(a.format(model=model) for a in arguments)], tmp_path)
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert sorted(os.listdir(tmp_path)) == before
