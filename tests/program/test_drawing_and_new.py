# SPDX-License-Identifier: Apache-2.0
"""polyop inspect --svg/--html draws an image that browsers show; polyop new creates a folder that builds (see
test_tutorial.py).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.processes import ROOT

SVG = "{http://www.w3.org/2000/svg}"
TITLE = "{http://www.w3.org/1999/xlink}title"


def run(program: str | Path, *arguments: object, **given: object) -> subprocess.CompletedProcess:
    return subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, check=False, **given)


def long_chain(nodes: int) -> onnx.ModelProto:
    """Writes convolutions with skip connections, with custom nodes in between."""
    weight = helper.make_tensor("w", TensorProto.FLOAT, [4, 4, 3, 3], np.zeros(144))
    chain_nodes, last = [], "x"
    for i in range(nodes):
        kind = i % 4
        if kind == 0:
            node = helper.make_node("Conv", [last, "w"], [f"t{i}"], f"conv {i}", pads=[1, 1, 1, 1])
        elif kind == 1:
            node = helper.make_node("Relu", [last], [f"t{i}"])
        elif kind == 2:
            node = helper.make_node(
                "MMCVCornerPool", [last], [f"t{i}"], f'"pool" <{i}> & co\\n', domain="mmcv", mode=i % 3
            )
        else:
            node = helper.make_node("Add", [last, chain_nodes[-3].output[0]], [f"t{i}"])
        chain_nodes.append(node)
        last = f"t{i}"
    shape = [1, 4, "H", "W"]
    graph = helper.make_graph(
        chain_nodes,
        "chain",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(last, TensorProto.FLOAT, shape)],
        [weight],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("mmcv", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


@pytest.mark.parametrize("kind", ["html", "svg"])
def test_open_shows_the_drawing(program: str, tmp_path: Path, kind: str) -> None:
    """`xdg-open` is a program of the test, which records what it is called with."""
    onnx.save(long_chain(4), tmp_path / "chain.onnx")
    opener = tmp_path / "bin" / "xdg-open"
    opener.parent.mkdir()
    opener.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" >> {tmp_path}/opened\n')
    opener.chmod(0o755)
    found = {**os.environ, "PATH": f"{opener.parent}:{os.environ['PATH']}"}
    command = ["inspect", "chain.onnx", f"--{kind}", f"chain.{kind}"]
    done = run(program, *command, cwd=tmp_path, env=found)
    assert (done.returncode, done.stderr) == (0, f"Wrote chain.{kind}\n")
    assert not (tmp_path / "opened").exists(), "opened without --open"
    done = run(program, *command, "--open", cwd=tmp_path, env=found)
    assert (done.returncode, done.stderr) == (0, f"Wrote chain.{kind}\n")
    assert (tmp_path / "opened").read_text() == f"{tmp_path / f'chain.{kind}'}\n"


@pytest.mark.parametrize("exists", [True, False], ids=["fails", "missing"])
def test_what_cannot_be_opened_was_written(program: str, tmp_path: Path, exists: bool) -> None:
    onnx.save(long_chain(4), tmp_path / "chain.onnx")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "dot").symlink_to(shutil.which("dot"))
    if exists:
        (tmp_path / "bin" / "xdg-open").symlink_to("/bin/false")
    found = {**os.environ, "PATH": str(tmp_path / "bin")}
    done = run(program, "inspect", "chain.onnx", "--html", "chain.html", "--open", cwd=tmp_path, env=found)
    assert done.returncode == 1
    assert "'chain.html' was written, but xdg-open does not open it" in done.stderr
    assert "open the file in a browser" in done.stderr
    assert (tmp_path / "chain.html").is_file()


def test_open_needs_a_drawing(program: str, tmp_path: Path) -> None:
    onnx.save(long_chain(4), tmp_path / "chain.onnx")
    done = run(program, "inspect", tmp_path / "chain.onnx", "--open")
    assert done.returncode == 2
    assert "--open: expected --html FILE or --svg FILE, got neither" in done.stderr


def test_draws_500_nodes(program: str, tmp_path: Path) -> None:
    onnx.save(long_chain(500), tmp_path / "chain.onnx")
    done = run(program, "inspect", tmp_path / "chain.onnx", "--svg", tmp_path / "chain.svg")
    assert done.returncode == 0, done.stderr
    root = ElementTree.parse(tmp_path / "chain.svg").getroot()
    nodes = [g for g in root.iter(f"{SVG}g") if g.get("class") == "node"]
    assert len(nodes) == 502  # with the input and the output; the weight has no box
    assert sum(g.get("class") == "edge" for g in root.iter(f"{SVG}g")) == 500 + 125 + 1
    tips = [a.get(TITLE) for a in root.iter(f"{SVG}a")]
    assert any("mmcv::MMCVCornerPool" in tip and "mode = 2" in tip and '"pool" <2> & co' in tip for tip in tips)
    assert any("in w: constant float32[4, 4, 3, 3]" in tip for tip in tips)
    fills = {p.get("fill") for p in root.iter(f"{SVG}path")}
    assert {"#1d4ed8", "#f3f4f6", "#fef3c7"} <= fills
    labels = [t.text for t in root.iter(f"{SVG}text")]
    assert labels.count("mmcv::MMCVCornerPool") == 125
    assert labels.count("Conv") == 125


def test_html_page(program: str, tmp_path: Path) -> None:
    onnx.save(long_chain(8), tmp_path / "a & b.onnx")
    done = run(program, "inspect", tmp_path / "a & b.onnx", "--html", tmp_path / "page.html")
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<title>a &amp; b.onnx</title>" in page
    assert page.count("<svg") == 1
    assert "not provided" in page


def test_models_without_names_and_with_invalid_text(program: str, tmp_path: Path) -> None:
    proto = onnx.ModelProto(ir_version=9)
    proto.graph.node.add(op_type="Odd\x01Type", domain='un"known\\', input=["", "a"], output=[""])
    proto.graph.node.add()
    (tmp_path / "odd.onnx").write_bytes(proto.SerializeToString())
    done = run(program, "inspect", tmp_path / "odd.onnx", "--svg", tmp_path / "odd.svg")
    assert done.returncode == 4, done.stderr  # unknown, but drawn
    assert "#b91c1c" in (tmp_path / "odd.svg").read_text()


def test_without_graphviz(program: str, tmp_path: Path) -> None:
    onnx.save(long_chain(4), tmp_path / "m.onnx")
    done = run(
        program, "inspect", tmp_path / "m.onnx", "--svg", tmp_path / "m.svg", env={**os.environ, "PATH": str(tmp_path)}
    )
    assert done.returncode == 1
    assert "there is no program 'dot'" in done.stderr
    assert "install Graphviz" in done.stderr
    assert not (tmp_path / "m.svg").exists()


# ---- polyop new ------------------------------------------------------------------------------------


def test_new_writes_a_folder(program: str, tmp_path: Path) -> None:
    done = run(program, "new", "hard_swish_2", "--into", "ops", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    files = {p.name: p.read_text() for p in (tmp_path / "ops" / "hard_swish_2").iterdir()}
    assert set(files) == {f"hard_swish_2{end}" for end in (".h", "_cpu.cc", "_cuda.cu", "_reference.cc", "_test.cc")}
    assert not any("@" in text for text in files.values())
    assert "struct HardSwish2 {" in files["hard_swish_2.h"]
    assert '"custom::HardSwish2"' in files["hard_swish_2.h"]
    run(program, "new", "soft_clip", "--into", "ops", "--gradient", cwd=tmp_path)
    files = {p.name: p.read_text() for p in (tmp_path / "ops" / "soft_clip").iterdir()}
    kernels = [f"_backward{end}" for end in (".h", "_cpu.cc", "_cuda.cu", "_reference.cc", "_test.cc")]
    assert {f"soft_clip{end}" for end in (*kernels, "_formula.py")} < set(files)
    assert not any("@" in text for text in files.values())
    assert "struct SoftClipBackward : GradientOf<SoftClip> {" in files["soft_clip_backward.h"]
    again = run(program, "new", "hard_swish_2", "--into", "ops", cwd=tmp_path)
    assert again.returncode == 2
    assert "exists; nothing was written" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["HardSwish"], "the name of an operator: expected lower_case_words, got 'HardSwish'"),
        (["../evil"], "expected lower_case_words, got '../evil'"),
        (["roi_align"], "the operator 'roi_align' exists already"),
        (["fine", "--node", "mmcv::MMCVRoiAlign"], "mmcv::MMCVRoiAlign is a node of roi_align"),
        (["fine", "--node", "nodomain"], "expected DOMAIN::TYPE"),
        (["fine", "--into", "elsewhere"], "--into: expected a folder called ops, or a folder of it, got 'elsewhere'"),
    ],
)
def test_new_refuses(program: str, tmp_path: Path, arguments: list[str], said: str) -> None:
    done = run(program, "new", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_template_is_formatted(program: str, tmp_path: Path) -> None:
    """Formatted as `make lint` requires in ops/."""
    run(program, "new", "some_op", "--into", "ops", "--gradient", cwd=tmp_path)
    (tmp_path / ".clang-format").write_text((ROOT / ".clang-format").read_text())
    tools, files = ROOT / ".venv" / "bin", set((tmp_path / "ops" / "some_op").iterdir())
    formulas = {file for file in files if file.suffix == ".py"}
    assert [file.name for file in formulas] == ["some_op_formula.py"]
    for command in (
        [tools / "clang-format", "--dry-run", "--Werror", *files - formulas],
        [tools / "ruff", "check", "--config", ROOT / "pyproject.toml", *formulas],
        [tools / "ruff", "format", "--check", "--config", ROOT / "pyproject.toml", *formulas],
    ):
        done = run(*command)
        assert done.returncode == 0, done.stdout + done.stderr
