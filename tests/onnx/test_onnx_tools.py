# SPDX-License-Identifier: Apache-2.0
"""What ONNX's and ONNX Runtime's own tools make of files with polyop's nodes: the table of docs/portable-files.md."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import compose, version_converter
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, quantize_static
from onnxruntime.quantization.shape_inference import quant_pre_process

import polyop
from polyop.portable import convert_file

NODE = "mmcv::MMCVRoiAlign"
FEEDS = {"x": np.random.default_rng(1).random((1, 2, 8, 8), np.float32), "rois": np.float32([[0, 0, 0, 4, 4]])}


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    weights = ", ".join(f"{v:.3f}" for v in np.random.default_rng(0).standard_normal(36))
    proto = onnx.parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 18, "mmcv": 1]>
        g (float[1, 2, 8, 8] x, float[1, 5] rois) => (z) <float[2, 2, 3, 3] w = {{{weights}}}> {{
            c = Conv<pads = [1, 1, 1, 1]>(x, w)
            y = mmcv.MMCVRoiAlign<output_height = 2, output_width = 2>(c, rois)
            z = Relu(y)
        }}"""
    )
    result = {name: tmp_path / f"{name}.onnx" for name in ("plain", "functions", "inlined")}
    onnx.save(proto, result["plain"])
    convert_file(result["plain"], result["functions"])
    convert_file(result["plain"], result["inlined"], inlined=True)
    return result


def _nodes(model: onnx.ModelProto) -> tuple[bool, list[str]]:
    """Returns whether the graph has polyop's node, and the functions."""
    names = {f"{node.domain}::{node.op_type}" for node in model.graph.node}
    return NODE in names, [f"{function.domain}::{function.name}" for function in model.functions]


def _require_equal(path: Path, model: onnx.ModelProto, needs_polyop: bool, tolerance: float = 1e-5) -> None:
    (want,) = polyop.session(path).run(None, FEEDS)
    onnx.save(model, after := path.with_name("after.onnx"))
    session = polyop.session(after) if needs_polyop else onnxruntime.InferenceSession(after)
    feeds = {i.name: FEEDS[i.name.removeprefix("p/")] for i in session.get_inputs()}
    np.testing.assert_allclose(session.run(None, feeds)[0], want, atol=tolerance, rtol=0)


class Reader(CalibrationDataReader):
    def __init__(self) -> None:
        self.left = [FEEDS]

    def get_next(self) -> dict[str, np.ndarray] | None:
        return self.left.pop() if self.left else None


@pytest.mark.parametrize("name", ["plain", "functions", "inlined"])
def test_quantize_static(name: str, files: dict[str, Path], tmp_path: Path) -> None:
    """It runs the model without polyop."""
    to = tmp_path / "out.onnx"
    if name == "plain":
        with pytest.raises(Exception, match=r"MMCVRoiAlign.* is not a registered function/op"):
            quantize_static(files[name], to, Reader(), quant_format=QuantFormat.QDQ)
        return
    quantize_static(files[name], to, Reader(), quant_format=QuantFormat.QDQ)
    assert _nodes(onnx.load(to)) == ((True, [NODE]) if name == "functions" else (False, []))
    _require_equal(files[name], onnx.load(to), needs_polyop=False, tolerance=0.2)


@pytest.mark.parametrize("name", ["plain", "functions", "inlined"])
def test_quant_pre_process(name: str, files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It inlines functions."""
    monkeypatch.chdir(tmp_path)  # where it leaves the file of a failure
    to = tmp_path / "out.onnx"
    if name == "plain":
        code = f"from {quant_pre_process.__module__} import *; quant_pre_process(*__import__('sys').argv[1:])"
        command = [sys.executable, "-c", code, str(files[name]), str(to)]  # where no test has defined polyop's nodes
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert "Incomplete symbolic shape inference" in done.stderr
        return
    quant_pre_process(files[name], to)
    assert _nodes(onnx.load(to)) == (False, [])
    _require_equal(files[name], onnx.load(to), needs_polyop=False)


@pytest.mark.parametrize("name", ["plain", "functions", "inlined"])
def test_add_prefix(name: str, files: dict[str, Path]) -> None:
    """It renames functions, whose nodes are then no longer polyop's, unless it is told not to."""
    before = onnx.load(files[name])
    model = compose.add_prefix(before, "p/", rename_functions=False)
    assert _nodes(model) == _nodes(before)
    _require_equal(files[name], model, needs_polyop=name == "plain")
    if name == "functions":
        assert _nodes(compose.add_prefix(before, "p_")) == (False, ["mmcv::p_MMCVRoiAlign"])


@pytest.mark.parametrize("name", ["plain", "functions", "inlined"])
def test_convert_version(name: str, files: dict[str, Path]) -> None:
    """It drops functions: the file needs polyop afterwards."""
    model = version_converter.convert_version(onnx.load(files[name]), 20)
    assert model.opset_import[0].version == 20
    assert _nodes(model) == (name != "inlined", [])
    _require_equal(files[name], model, needs_polyop=name != "inlined")
