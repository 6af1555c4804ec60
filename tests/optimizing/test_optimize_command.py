# SPDX-License-Identifier: Apache-2.0
"""The program's `polyop optimize`, and its documentation page: the commands and programs run unchanged."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import onnx
import pytest

from polyop.optimizing.report import Report
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
    commands = [line for kind, text in blocks if not kind for line in text.replace("\\\n", "").splitlines()]
    programs = [text for kind, text in blocks if kind == "python"]
    assert len(commands) == 8
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
        (["none.onnx", "-o", "x.onnx"], 3, "'none.onnx' does not exist"),
        (["text.onnx", "-o", "x.onnx"], 3, "text.onnx is not an ONNX model, or damaged"),
        (["{model}", "-o", "text.onnx/x.onnx"], 3, "'text.onnx/x.onnx': Not a directory"),
        (["{model}", "-o", "x.onnx", "--shape", "z=1x2"], 2, "the model has no input 'z'"),
        (["{model}", "-o", "x.onnx", "--shape", "1x2"], 2, "--shape 1x2: NAME= is missing"),
        (["{model}", "-o", "x.onnx", "--mesure"], 2, "did you mean '--measure'?"),
        (["{model}"], 2, "--output is required"),
        (["unknown.onnx", "-o", "x.onnx"], 4, "ONNX Runtime cannot run "),
    ],
)
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


@pytest.mark.parametrize("given", [(), ("--shape", "x=1x2"), ("-i", "x=zeros")])
def test_reads_the_model_once(given: tuple[str, ...], tmp_path: Path) -> None:
    """Nothing is replaced, so the file is also copied."""
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[1, 2] x) => (float[1, 2] y) { y = Relu (x) }'
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    program = (
        "import sys; opened = []; sys.addaudithook(lambda event, args: event == 'open' and opened.append(str(args[0])));"
        "from polyop._commands.main import main; code = main(sys.argv[1:]);"
        "print(sum(name.endswith('m.onnx') for name in opened)); sys.exit(code)"
    )
    done = run([sys.executable, "-c", program, "optimize", "m.onnx", "-o", "x.onnx", *given], tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "2"


def test_names_the_file_of_the_tensors(program: str, tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["": 17]> g (float[1, 9] x) => (float[1, 99] y) { y = MatMul (x, w) }'
    original = onnx.parser.parse_model(text)
    original.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((9, 99), np.float32), "w"))
    onnx.save(original, tmp_path / "m.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    done = run([program, "optimize", "m.onnx", "-o", "new/fast.onnx", "--threads", "1"], tmp_path)
    assert done.returncode == 0, done.stderr
    (named,) = re.findall(r"its tensors are in (\S+): keep the files together", done.stdout)
    assert (tmp_path / "new" / named).is_file()


@pytest.mark.parametrize(
    ("after", "said"), [(0.1, "3.12x faster"), (0.312, "as fast"), (0.39, "1.25x slower"), (0.3125, "as fast")]
)
def test_ratios(after: float, said: str) -> None:
    assert Report(before=0.312, after=after).lines()[1].endswith(f", {said}")


def test_a_session_shows_progress_on_a_terminal(model: Path, tmp_path: Path) -> None:
    """And only in the call that optimizes."""
    copy = shutil.copy(model, tmp_path / "m.onnx")
    code = f"import polyop; polyop.session({str(copy)!r}, optimize=True); print('ready')"
    first, second = (run_in_terminal([sys.executable, "-c", code], tmp_path) for _ in range(2))
    assert "running the original model" in first
    assert "ready" in first
    assert second.split() == ["ready"]


def run_in_terminal(words: list[str], folder: Path) -> str:
    """Returns what a command writes to a terminal."""
    reader, writer = os.openpty()
    process = subprocess.Popen(words, env=environment(TERM="xterm"), cwd=folder, stdout=writer, stderr=writer)
    os.close(writer)
    said = b""
    with suppress(OSError):  # the end of a terminal is an error
        while part := os.read(reader, 1 << 16):
            said += part
    os.close(reader)
    assert process.wait() == 0, said.decode()
    return said.decode()
