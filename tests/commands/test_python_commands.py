# SPDX-License-Identifier: Apache-2.0
"""The commands that the program hands over to `python -m polyop`: which Python, help, exit codes and errors."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from polyop._commands import convert
from polyop._commands import main as commands
from polyop._commands.errors import CommandError, ExitCode, describe
from polyop._commands.numbers import parse_integer, parse_real
from polyop.errors import PolyopError
from polyop.optimizing import FileError
from tests.program.test_cli import NO_NUMBERS
from tests.support.machines import identity, photos
from tests.support.processes import ROOT, environment
from tests.support.single_node import model as single_node
from tests.support.tensorrt_rtx import RUNTIME as TENSORRT_RTX


def run(*words: object, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=environment(**variables),
        capture_output=True,
        text=True,
        check=False,
    )


def test_both_help_texts_are_the_same(program: str, tmp_path: Path) -> None:
    listed = run(program, "--help", cwd=tmp_path).stdout
    for name in commands.COMMANDS:
        by_program = run(program, name, "--help", cwd=tmp_path)
        by_python = run(sys.executable, "-m", "polyop", name, "--help", cwd=tmp_path)
        assert by_program.returncode == by_python.returncode == 0, by_program.stderr
        assert by_program.stdout == by_python.stdout
        assert by_python.stdout.startswith(f"usage: polyop {name} ")
        summary = by_python.stdout.split("\n\n")[1]
        assert re.search(rf"^  {name} +{re.escape(' '.join(summary.split()))}$", listed, re.MULTILINE), listed


@pytest.mark.parametrize(
    "words", [[], ["--help"], ["--version"], ["rnu"], ["ops", "roi_align"], ["inspect", "none.onnx"]]
)
def test_python_becomes_the_program(program: str, tmp_path: Path, words: list[str]) -> None:
    path = f"{Path(program).parent}:{os.environ['PATH']}"
    want, got = (run(*how, *words, cwd=tmp_path, PATH=path) for how in ([program], [sys.executable, "-m", "polyop"]))
    assert (got.returncode, got.stdout, got.stderr) == (want.returncode, want.stdout, want.stderr)


def test_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(commands, "find_program", lambda: None)
    for words in (["run", "model.onnx"], ["--help"], []):
        assert commands.main(words) == ExitCode.NO_RUNTIME
        assert "expected a command out of batch, triton, " in capsys.readouterr().err


def test_a_program_of_another_version(tmp_path: Path) -> None:
    """It has a command in Python that this package lacks, and hands it over again and again."""
    (tmp_path / "polyop").write_text(f'#!/bin/sh\nexec {sys.executable} -m polyop "$@"\n')
    (tmp_path / "polyop").chmod(0o755)
    (tmp_path / "python").symlink_to(sys.executable)
    code = f"import sys; sys.executable = {str(tmp_path / 'python')!r}; import polyop.__main__ as m; sys.exit(m._run())"
    done = run(sys.executable, "-c", code, "newer", cwd=tmp_path, PATH=str(tmp_path))
    assert done.returncode == ExitCode.NO_RUNTIME
    assert "got 'newer'" in done.stderr


# ---- which Python ----------------------------------------------------------------------------------------------------


def python(path: Path, label: str, has_polyop: bool) -> None:
    """Writes an executable that prints its label and the module instead of running `-c PROGRAM MODULE …`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f'#!/bin/sh\n[ $# = 2 ] && exit {0 if has_polyop else 1}\nshift 2\necho {label} "$@"\n')
    path.chmod(0o755)


def test_the_environment_of_the_program_comes_first(program: str, tmp_path: Path) -> None:
    """Also where the program is a link, as in a checkout, or was found on PATH."""
    here, other = tmp_path / "here" / "bin", tmp_path / "other" / "bin"
    python(here / "python", "here", True)
    python(other / "python3", "other", True)
    (here / "polyop").symlink_to(Path(program).resolve())
    want = "here polyop portable a.onnx -o b.onnx\n"
    words = ["portable", "a.onnx", "-o", "b.onnx"]
    assert run(here / "polyop", *words, cwd=tmp_path, PATH=f"{other}:/usr/bin:/bin").stdout == want
    assert run("here/bin/polyop", *words, cwd=tmp_path, PATH=f"{other}:/usr/bin:/bin").stdout == want
    path = f"{here}:{other}:/usr/bin:/bin"
    assert run("sh", "-c", "polyop " + " ".join(words), cwd=tmp_path, PATH=path).stdout == want
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "polyop").symlink_to(here / "polyop")
    assert run(tmp_path / "link" / "polyop", *words, cwd=tmp_path, PATH=f"{other}:/usr/bin:/bin").stdout == want


@pytest.mark.parametrize("name", commands.COMMANDS)
def test_commands_run_without_an_activated_environment(name: str, program: str, tmp_path: Path) -> None:
    """PATH's python3 has no polyop, as for `.venv/bin/polyop` in a fresh clone."""
    python(tmp_path / "python3", "other", False)
    done = subprocess.run(
        [program, name, "--help"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"usage: polyop {name} ")


def test_a_python_without_polyop_is_skipped(program: str, tmp_path: Path) -> None:
    """The message lists all that were tried."""
    here, other = tmp_path / "here" / "bin", tmp_path / "other" / "bin"
    here.mkdir(parents=True)
    shutil.copy(Path(program).resolve(), here / "polyop")  # a copy is not in the checkout, whose .venv has polyop
    python(here / "python", "here", False)
    python(other / "python3", "other", True)
    assert run(here / "polyop", "portable", cwd=tmp_path, PATH=str(other)).stdout == "other polyop portable\n"
    python(other / "python3", "other", False)
    done = run(here / "polyop", "portable", cwd=tmp_path, PATH=str(other))
    assert done.returncode == ExitCode.NO_RUNTIME
    assert f"{here}/python: has no package polyop" in done.stderr
    assert f"{other}/python3: has no package polyop" in done.stderr
    (here / "python").unlink()
    done = run(here / "polyop", "portable", cwd=tmp_path, PATH="/nowhere")
    assert f"{here}/python: does not exist" in done.stderr
    assert "python3 on PATH: does not exist" in done.stderr


def test_a_python_that_has_polyop_starts_once(program: str, tmp_path: Path) -> None:
    """Its environment shows that without a second process, also where a file of paths leads to a checkout."""
    folder = tmp_path / "bin"
    site = tmp_path / "lib" / "python3.99" / "site-packages"
    site.mkdir(parents=True)
    python(folder / "python3.99", "here", False)  # what only looks for the package finds none
    (folder / "python").symlink_to("python3.99")
    shutil.copy(Path(program).resolve(), folder / "polyop")
    (site / "polyop.pth").write_text(f"{ROOT / 'python'}\n")
    assert run(folder / "polyop", "portable", cwd=tmp_path, PATH="/nowhere").stdout == "here polyop portable\n"
    (site / "polyop.pth").unlink()
    assert run(folder / "polyop", "portable", cwd=tmp_path, PATH="/nowhere").returncode == ExitCode.NO_RUNTIME
    (site / "polyop").mkdir()
    (site / "polyop" / "__init__.py").touch()
    assert run(folder / "polyop", "portable", cwd=tmp_path, PATH="/nowhere").stdout == "here polyop portable\n"


# ---- errors ----------------------------------------------------------------------------------------------------------


UNKNOWN_ATTRIBUTE = (
    "mmcv::MMCVRoiAlign (node 'heads'): unknown attribute 'output_widht'\n"
    "  hint: did you mean 'output_width'? `polyop ops roi_align` lists the attributes\n"
)
"""As the program says it: test_model_checks.py."""


WRONG_VALUE = "mmcv::MMCVRoiAlign (node 'heads'): attribute 'output_width': expected "


def align(**attributes: int) -> onnx.ModelProto:
    """Returns a model of one node; with attributes that exporters add for TensorRT."""
    given = {"output_height": 2, **attributes, "plugin_version": "1", "plugin_namespace": ""}
    inputs = {"x": np.zeros((1, 2, 8, 8), np.float32), "rois": np.zeros((1, 5), np.float32)}
    proto = single_node("mmcv::MMCVRoiAlign", inputs, attributes=given)
    proto.graph.node[0].name = "heads"
    return proto


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["batch", "--maen", "1"], 2, "did you mean '--mean'?"),
        (["optimize", "m.onnx"], 2, "--output is required"),
        (["optimize"], 2, "model and --output are required"),
        (["optimize", "m.onnx", "-o", "x.onnx", "--threads", "0"], 2, "--threads: '0' is not an integer in [1 - 1024]"),
        (["optimize", "m.onnx", "-o", "x.onnx", "--layout", "CHW"], 2, "--layout: expected NCHW or NHWC, got 'CHW'"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "x=text.txt"], 2, "unknown kind"),
        (
            ["optimize", "m.onnx", "-o", "x.onnx", "-i", "y=zeros"],
            2,
            "the model has no input 'y'\n  hint: its inputs are x: float[n, 2]",
        ),
        (["optimize", "m.onnx", "-o", "x.onnx", "--shape", "X=1x2"], 2, "has no input 'X'\n  hint: did you mean 'x'?"),
        (["batch", "m.onnx", "-i", "y=in", "-o", "out"], 2, "the model has no input 'y'"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--set", "y=1"], 2, "the model has no input 'y'"),
        (["convert", "m.onnx", "-o", "m.engine", "--shapes", "y=1"], 2, "the model has no input 'y'"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "x=text.npy"], 3, "text.npy"),
        (["optimize", "m.onnx", "-o", "x.onnx", "-i", "x=none.npy"], 3, "'none.npy'"),
        (["optimize", "m.onnx", "-o", "x.onnx", "--set", "x=1,a"], 2, "--set x"),
        (["optimize", "m.onnx", "more.onnx", "-o", "x.onnx"], 2, "unexpected argument 'more.onnx'"),
        (["optimize", "unknown.onnx", "-o", "x.onnx"], 4, "nobody provides nobody::Frobnicate"),
        (["optimize", "misspelt.onnx", "-o", "x.onnx"], 4, "No Op registered for Frobnicate"),
        (["optimize", "empty.onnx", "-o", "x.onnx"], 3, "empty.onnx is not an ONNX model, or damaged: it is empty"),
        (["optimize", "m.onnx", "-o", "m.onnx"], 2, "--output m.onnx: expected another file than the model"),
        (["portable", "m.onnx", "-o", "./m.onnx"], 2, "--output ./m.onnx: expected another file than the model"),
        (["portable", "empty.onnx", "-o", "x.onnx"], 3, "empty.onnx is not an ONNX model, or damaged: it is empty"),
        (["portable", "m.onnx", "-o", "text.onnx/x.onnx"], 3, "'text.onnx/x.onnx': Not a directory"),
        (["portable", "none.onnx", "-o", "x.onnx"], 3, "'none.onnx' does not exist"),
        (["optimize", "attribute.onnx", "-o", "x.onnx"], 3, UNKNOWN_ATTRIBUTE),
        (["optimize", "value.onnx", "-o", "x.onnx"], 3, WRONG_VALUE),
        (["portable", "value.onnx", "-o", "x.onnx"], 3, WRONG_VALUE),
        (["optimize", "attribute.onnx", "-o", "x.onnx", "--ops", "none.so"], 3, UNKNOWN_ATTRIBUTE),
        (["portable", "attribute.onnx", "-o", "x.onnx"], 3, UNKNOWN_ATTRIBUTE),
        (["batch", "attribute.onnx", "-i", "in", "-o", "out"], 3, UNKNOWN_ATTRIBUTE),
        (["triton", "attribute.onnx", "-o", "out"], 3, UNKNOWN_ATTRIBUTE),
        (["convert", "attribute.onnx", "-o", "m.engine"], 3, UNKNOWN_ATTRIBUTE),
        (["convert", "attribute.onnx", "-o", "m.xml", "--to", "openvino"], 3, UNKNOWN_ATTRIBUTE),
        (["portable", "text.onnx", "-o", "x.onnx"], 3, "text.onnx is not an ONNX model, or damaged"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--workers", "2"], 2, "--workers requires --ray"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--range", "1"], 2, "--range: expected BLACK,WHITE"),
        (["batch", "unknown.onnx", "-i", "in", "-o", "out"], 4, "nobody provides nobody::Frobnicate"),
        (["batch", "misspelt.onnx", "-i", "text.npy", "-o", "out"], 4, "No Op registered for Frobnicate"),
        (
            ["batch", "empty.onnx", "-i", "in", "-o", "out"],
            3,
            "empty.onnx is not an ONNX model, or damaged: it is empty",
        ),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--resize", "8"], 2, "--resize: expected HEIGHTxWIDTH"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--mean", "1,2"], 2, "--mean: expected a number, or three"),
        (["batch", "m.onnx", "-i", "in", "-o", "out", "--std", "0"], 2, "--std: expected numbers other than 0"),
        (["triton", "none.onnx", "-o", "out"], 3, "'none.onnx' does not exist"),
        (["triton", "empty.onnx", "-o", "out"], 3, "empty.onnx is not an ONNX model, or damaged: it is empty"),
        (["triton", "unknown.onnx", "-o", "out"], 4, "nobody provides nobody::Frobnicate"),
        (["convert", "m.onnx", "-o", "m.engine", "--shapes", "x=1:2"], 2, "expected 1 or 3 shapes, got 2"),
        (["convert", "m.onnx", "-o", "m.engine", "--set", "x=1,a"], 2, "'a' is not a number"),
        (["convert", "m.onnx", "-o", "m.bin", "--to", "openvino"], 2, "expected a .xml file, got 'm.bin'"),
        (["convert", "m.onnx", "-o", "m.xml", "--to", "openvino", "--layers"], 2, "are options of TensorRT"),
        (["convert", "unknown.onnx", "-o", "m.xml", "--to", "openvino"], 4, "nobody provides nobody::Frobnicate"),
        (
            ["convert", "empty.onnx", "-o", "m.xml", "--to", "openvino"],
            3,
            "empty.onnx is not an ONNX model, or damaged: it is empty",
        ),
        (["convert", "m.onnx", "-o", "m.xml"], 2, "expected an engine, got 'm.xml'"),
        (["batch", "m.onnx", "-i", "in", "-o", "out"], 3, "-i in: 'in' does not exist"),
        (["portable", "lost.onnx", "-o", "x.onnx"], 3, "external data 'w.data' is missing"),
        (["triton", "lost.onnx", "-o", "out"], 3, "external data 'w.data' is missing"),
        (["convert", "m.onnx", "-o", "m.onnx"], 2, "expected an engine or a .xml file, got 'm.onnx'"),
        (["convert", "none.onnx", "-o", "m.engine"], 3, "'none.onnx' does not exist"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_errors(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    code: int,
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    model = onnx.load(identity(tmp_path / "m.onnx", ["n", 2]))
    node = helper.make_node("Frobnicate", ["x"], ["y"], domain="nobody")
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    model.graph.CopyFrom(helper.make_graph([node], "g", values[:1], values[1:]))
    onnx.save(model, tmp_path / "unknown.onnx")
    node.domain = ""
    model.graph.CopyFrom(helper.make_graph([node], "g", values[:1], values[1:]))
    onnx.save(model, tmp_path / "misspelt.onnx")
    onnx.save(align(output_widht=2), tmp_path / "attribute.onnx")
    onnx.save(align(output_width=-2), tmp_path / "value.onnx")
    (tmp_path / "empty.onnx").touch()
    weights = numpy_helper.from_array(np.ones(2, np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    model.graph.CopyFrom(helper.make_graph([node], "g", values[:1], values[1:], [weights]))
    onnx.save(model, tmp_path / "lost.onnx", save_as_external_data=True, location="w.data", size_threshold=0)
    (tmp_path / "w.data").unlink()
    for name in ("text.onnx", "text.npy"):
        (tmp_path / name).write_text("this is text")
    before = sorted(path.name for path in tmp_path.iterdir())
    assert commands.main(words) == code
    err = capsys.readouterr().err
    assert err.startswith("polyop: error: "), err
    assert said in err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_portable_names_what_nobody_provides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The others get functions; the exit code says that the file does not run."""
    proto = align(output_width=2)
    unknown = [helper.make_node("Frobnicate", [name], [f"{name}/f"], domain="nobody") for name in ("x", "rois")]
    proto.graph.node.extend(unknown)
    proto.opset_import.append(helper.make_opsetid("nobody", 1))
    path, out = tmp_path / "m.onnx", tmp_path / "x.onnx"
    onnx.save(proto, path)
    assert commands.main(["portable", str(path), "-o", str(out)]) == ExitCode.NOT_PROVIDED
    rows = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["mmcv::MMCVRoiAlign", "1", "yes", "-"] in rows
    assert ["nobody::Frobnicate", "2", "no", "nobody", "provides", "it"] in rows
    assert [f"{f.domain}::{f.name}" for f in onnx.load(out).functions] == ["mmcv::MMCVRoiAlign"]
    words = ["portable", str(path), "-o", str(out), "--json"]
    assert commands.main([*words, "--only", "mmcv::MMCVRoiAlign"]) == ExitCode.OK
    assert [record["name"] for record in json.loads(capsys.readouterr().out)["nodes"]] == ["mmcv::MMCVRoiAlign"]
    assert commands.main([*words, "--only", "nobody::Frobnicate"]) == ExitCode.NOT_PROVIDED
    records = json.loads(capsys.readouterr().out)["nodes"]
    assert [(record["node"], record["given"]) for record in records] == [("x/f", False), ("rois/f", False)]


NOBODY = (
    "polyop: error: nobody provides nobody::Frobnicate\n"
    "  hint: `polyop inspect unknown.onnx` has advice; --ops LIB adds a library of operators\n"
)


def unknown(path: Path) -> None:
    proto = single_node("nobody::Frobnicate", {"x": np.zeros(2, np.float32)}, shapes={"y": [2]})
    proto.graph.output[0].type.tensor_type.elem_type = TensorProto.FLOAT
    onnx.save(proto, path)


@pytest.mark.parametrize(("name", "code"), [("unknown", 4), ("known", 1)])
def test_convert_names_what_tensorrt_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, code: int
) -> None:
    """TensorRT decides, because it has plugins for nodes that polyop does not know. Here it rejects every model."""
    from polyop import tensorrt

    def reject(*_: object, **__: object) -> None:
        raise tensorrt.EngineError("TensorRT rejects the model")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tensorrt, "onnx2trt", reject)
    monkeypatch.setattr(convert, "restart_with_parser_path", lambda: None)
    unknown(tmp_path / "unknown.onnx")
    onnx.save(align(output_width=2), tmp_path / "known.onnx")
    assert commands.main(["convert", f"{name}.onnx", "-o", "new/x.engine"]) == code
    rejected = "polyop: error: TensorRT rejects the model\n"
    assert capsys.readouterr().err == (NOBODY if name == "unknown" else rejected)
    assert not list((tmp_path / "new").iterdir())


def test_convert_with_tensorrts_parser(tmp_path: Path, not_run: Callable[[str], None]) -> None:
    """TensorRT-RTX's, which needs no GPU."""
    if not TENSORRT_RTX.is_dir():
        return not_run("TensorRT's parser was not run: TensorRT-RTX is installed only where CUDA is")
    unknown(tmp_path / "unknown.onnx")
    python_path = os.pathsep.join([str(TENSORRT_RTX), str(ROOT / "python")])
    done = run(
        sys.executable, "-m", "polyop", "convert", "unknown.onnx", "-o", "x.engine", cwd=tmp_path,
        PYTHONPATH=python_path, LD_LIBRARY_PATH=str(TENSORRT_RTX / "tensorrt_rtx_libs"),
        POLYOP_TENSORRT="tensorrt_rtx_bindings",
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (4, NOBODY)
    assert [path.name for path in tmp_path.iterdir()] == ["unknown.onnx"]


WITHOUT = """
import sys
for name in {packages}: sys.modules[name] = None
from polyop._commands.main import main
sys.exit(main(sys.argv[1:]))
"""
"""Runs a command where these packages are not installed."""
RUNTIMES = ("onnxruntime", "onnx", "torch", "openvino", "tensorrt", "tensorrt_rtx", "tensorrt_rtx_bindings")


@pytest.mark.parametrize(
    "words",
    [
        ["optimize", "m.onnx", "-o", "new/x.onnx"],
        ["batch", "m.onnx", "-i", "in", "-o", "new/out"],
        ["triton", "m.onnx", "-o", "new/out"],
        ["portable", "m.onnx", "-o", "new/x.onnx"],
        ["convert", "m.onnx", "-o", "new/x.engine"],
        ["convert", "m.onnx", "-o", "new/x.xml", "--to", "openvino"],
    ],
    ids=" ".join,
)
def test_without_any_runtime(tmp_path: Path, words: list[str]) -> None:
    """Exit code 5, one line, and a hint whose extra exists."""
    identity(tmp_path / "m.onnx", ["n", 2])
    done = run(sys.executable, "-c", WITHOUT.format(packages=RUNTIMES), *words, cwd=tmp_path)
    assert done.returncode == 5, done.stderr
    lines = done.stderr.splitlines()
    assert lines[0].startswith("polyop: error: "), done.stderr
    assert len(lines) == 2, done.stderr
    assert lines[1].startswith("  hint: pip install"), done.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["optimize", "batch", "triton"])
def test_an_onnxruntime_that_is_too_old(tmp_path: Path, name: str) -> None:
    old = ROOT / ".deps" / "onnxruntime-1.17.3"
    assert old.is_dir(), "run tools/setup.sh"
    (tmp_path / "onnxruntime.py").write_text(f"__version__ = {old.name.partition('-')[2]!r}\n")
    identity(tmp_path / "m.onnx", ["n", 2])
    words = [name, "m.onnx", *(["-i", "in"] if name == "batch" else []), "-o", "out"]
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = run(sys.executable, "-m", "polyop", *words, cwd=tmp_path, PYTHONPATH=path)
    assert done.returncode == 5, done.stderr
    assert "expected ONNX Runtime 1.20 or newer, got 1.17.3" in done.stderr
    assert "hint: pip install --upgrade onnxruntime" in done.stderr


def test_a_missing_output_folder_is_created(tmp_path: Path) -> None:
    model = identity(tmp_path / "m.onnx", ["n", 2])
    for name in ("portable", "optimize"):
        done = run(sys.executable, "-m", "polyop", name, model, "-o", f"{name}/new/x.onnx", cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert onnx.load(tmp_path / name / "new" / "x.onnx").graph.node


def test_extras_of_hints_exist() -> None:
    """The extras that texts of the package, the program and the pages name are those of pyproject.toml."""
    project = (ROOT / "pyproject.toml").read_text().partition("[project.optional-dependencies]")[2].partition("\n\n")[0]
    extras = set(re.findall(r"^(\w+) =", project, re.MULTILINE))
    assert "batch" in extras
    files = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")]
    files += [*(ROOT / "python").rglob("*.py"), *(ROOT / "cli").rglob("*.cc")]
    found = {
        (file.name, extra)
        for file in files
        for names in re.findall(r"(?:polyop|\.whl)\"?\)?\[([a-z,]+)\]", file.read_text())
        for extra in names.split(",")
    }
    assert len(found) > 10
    assert [pair for pair in sorted(found) if pair[1] not in extras] == []


# ---- Ctrl-C ----------------------------------------------------------------------------------------------------------


def interrupted(words: list[str], folder: Path, ready: Callable[[], bool]) -> subprocess.CompletedProcess[str]:
    """Runs a command and sends SIGINT twice, as impatient users do, once it is ready."""
    temporary = folder / "temporary"
    temporary.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-m", "polyop", *words],
        cwd=folder,
        env=environment(TMPDIR=str(temporary)),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not ready() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert [path.name for path in temporary.iterdir() if path.name != ".ses"] == []  # .ses is ONNX Runtime's
    return subprocess.CompletedProcess(words, process.returncode, out, err)


def test_an_interrupted_batch_continues(tmp_path: Path) -> None:
    model = identity(tmp_path / "m.onnx", ["n", 3, "h", "w"])
    photos(tmp_path / "in", 1500)
    words = ["batch", str(model), "-i", "in", "-o", "out", "--threads", "1"]
    done = interrupted(words, tmp_path, lambda: any((tmp_path / "out").rglob("*.npz")))
    assert (done.returncode, done.stderr) == (130, "polyop: interrupted; the same command continues\n")
    assert 0 < len(list((tmp_path / "out").rglob("*.npz"))) < 1500
    assert not list((tmp_path / "out").rglob(".*"))
    done = run(sys.executable, "-m", "polyop", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of 1500 files were done before" in done.stdout
    assert len(list((tmp_path / "out").rglob("*.npz"))) == 1500


def test_an_interrupted_optimization_leaves_nothing(tmp_path: Path) -> None:
    """The model is large enough to have a working copy in the temporary folder."""
    weights = np.ones((1 << 22, 2), np.float32)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 2]) for name in "xy"]
    nodes = [
        helper.make_node("MatMul", ["x", "transposed"], ["wide"]),
        helper.make_node("MatMul", ["wide", "w"], ["y"]),
    ]
    nodes.insert(0, helper.make_node("Transpose", ["w"], ["transposed"], perm=[1, 0]))
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(weights, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    copies = tmp_path / "temporary"
    done = interrupted(
        ["optimize", "m.onnx", "-o", "x.onnx"], tmp_path, lambda: any(copies.rglob("polyop-*/weights.data"))
    )
    assert (done.returncode, done.stderr) == (130, "polyop: interrupted\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.onnx", "temporary"]


def test_an_interrupt_while_packages_are_loaded(tmp_path: Path) -> None:
    """NumPy and others turn it into an ImportError."""
    (tmp_path / "onnx.py").write_text(
        "import os, signal\ntry: os.kill(os.getpid(), signal.SIGINT)\n"
        "except KeyboardInterrupt: raise ImportError('import failed')\n"
    )
    identity(tmp_path / "m.onnx", ["n", 2])
    words = ["optimize", "m.onnx", "-o", "x.onnx"]
    done = run(sys.executable, "-m", "polyop", *words, cwd=tmp_path, PYTHONPATH=f"{tmp_path}:{ROOT}")
    assert (done.returncode, done.stderr) == (130, "polyop: interrupted\n")


def test_exit_codes() -> None:
    errors = {
        FileError("a"): 3,
        FileNotFoundError(2, "No such file", "a.onnx"): 3,
        PolyopError("a"): 1,
        CommandError(ExitCode.NOT_PROVIDED, "a"): 4,
        ModuleNotFoundError("No module named 'x'", name="x"): 5,
        ImportError("x is too old"): 5,
        KeyboardInterrupt(): 130,
        RuntimeError("a"): 1,
    }
    assert {error: int(describe(error).code) for error in errors} == errors
    assert describe(FileNotFoundError(2, "No such file", "a.onnx")).message == "'a.onnx': No such file"
    assert describe(ModuleNotFoundError(name="x"), "pip install x").hint == "pip install x"


def test_the_traceback(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert commands.main(["portable", "none.onnx", "-o", "x.onnx"]) == 3
    assert "Traceback" not in capsys.readouterr().err
    monkeypatch.setenv("POLYOP_DEBUG", "1")
    assert commands.main(["portable", "none.onnx", "-o", "x.onnx"]) == 3
    assert "Traceback" in capsys.readouterr().err


ERRORS = [
    ValueError("two\n  lines, as ONNX's\nchecker writes"),
    RuntimeError("Exception from src/core.cpp:84:\nCheck failed\n"),
    KeyError("axis"),
    AssertionError(),
    RecursionError("maximum recursion depth exceeded"),
    MemoryError(),
    OSError(28, "No space left on device", "x.onnx"),
    UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    ModuleNotFoundError("No module named 'x'", name="x"),
    PolyopError("one\ntwo", "a\nhint"),
    KeyboardInterrupt(),
]


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("name", commands.COMMANDS)
def test_every_exception_is_one_line(
    name: str, debug: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """With POLYOP_DEBUG=1 the traceback is before it."""
    monkeypatch.setenv("POLYOP_DEBUG", "1" if debug else "0")
    words = [name, "m.onnx", "-o", "x", *(["-i", "in"] if name == "batch" else [])]
    if name == "doctor":
        words = [name]
    for error in ERRORS:

        def fail(options: object, error: BaseException = error) -> int:
            raise error

        monkeypatch.setattr(f"polyop._commands.{name}.run", fail)
        assert commands.main(words) == describe(error).code
        captured = capsys.readouterr()
        assert not captured.out
        lines = captured.err.splitlines()
        hints = [line for line in lines if line.startswith("  hint: ")]
        said = [line for line in lines if line.startswith(("polyop: error: ", "polyop: interrupted"))]
        assert len(said) == 1, captured.err
        assert len(said[0]) > len("polyop: error: ")
        assert (f"{type(error).__name__}" in captured.err and "Traceback" in captured.err) or not debug
        assert debug or lines == [*said, *hints], captured.err


@pytest.mark.parametrize("module", ["run_engine", "run_openvino", "run_torch"])
def test_every_exception_of_a_bridge_is_in_its_reply(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The program prints it. An answer that JSON lacks is an error, too."""
    from polyop._commands import bridge

    (tmp_path / "request").write_text("{}")
    monkeypatch.setattr(sys, "argv", [module, str(tmp_path / "request"), str(tmp_path / "reply")])
    for error in ERRORS:

        def fail(request: object, error: BaseException = error) -> dict:
            raise error

        bridge.serve(fail, "pip install it")
        reply = json.loads((tmp_path / "reply").read_text())
        assert reply["code"] == describe(error).code
        assert reply["error"]
        assert "\n" not in reply["error"] + reply["hint"]
        assert not capsys.readouterr().err
    bridge.serve(lambda request: {"value": object()}, "")
    assert "not JSON serializable" in json.loads((tmp_path / "reply").read_text())["error"]


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    """As in `polyop optimize … | head -1`: nobody reads the rest."""
    identity(tmp_path / "m.onnx", ["n", 2])
    command = f"{sys.executable} -m polyop optimize m.onnx -o x.onnx --json"
    done = run("bash", "-o", "pipefail", "-c", f"{command} | true", cwd=tmp_path)
    assert (done.returncode, done.stderr) in ((0, ""), (ExitCode.CLOSED_PIPE, ""))


def test_numbers() -> None:
    """As cli/base/files_test.cc has them for the program."""
    assert parse_integer("-12") == -12
    assert parse_integer(" +7 ") == 7
    assert parse_integer("9223372036854775807") == 2**63 - 1
    for text in (
        "",
        " ",
        "+",
        "-",
        "+-1",
        "9223372036854775808",
        "1.0",
        "1e3",
        "0x10",
        "1 2",
        "nan",
        "1,",
        "1_0",
        "\u0663",
    ):
        assert parse_integer(text) is None, text
    assert parse_real("2.5e-1") == 0.25
    assert parse_real("-inf") == float("-inf")
    for text in ("", "1e999", "1e-999", "0x10", "1.2.3", "one", "1 2", "--1", "1_0"):
        assert parse_real(text) is None, text


@pytest.mark.parametrize(
    "words",
    [
        ["--set", "x=z", "--workspace", "{}"],
        ["--set", "x=z", "--shapes", "a={}:2:3"],
        ["--shapes", "a=z", "--set", "b={}"],
    ],
    ids=["--workspace", "--shapes", "--set"],
)
def test_any_text_for_a_number_gives_a_clear_error(capsys: pytest.CaptureFixture[str], words: list[str]) -> None:
    for text in NO_NUMBERS:
        code = commands.main(["convert", "m.onnx", "-o", "m.engine", *(word.replace("{}", text) for word in words)])
        assert code == ExitCode.USAGE, text
        err = capsys.readouterr().err
        assert err.startswith("polyop: error: "), text
        assert "Traceback" not in err
