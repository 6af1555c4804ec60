# SPDX-License-Identifier: Apache-2.0
"""polyop optimize finds deformable convolution that deform_conv2d_onnx_exporter wrote as nodes that gather."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper

from polyop.optimizing import optimize
from tests.onnxruntime.test_execution_provider import provided
from tests.onnxruntime.test_provider_patterns import check
from tests.support.exported import nodes
from tests.support.processes import ROOT
from tests.support.tensorrt_rtx import HAS_PLUGINS, NO_ENGINE, build_all

PROGRAM = ROOT / "bench" / "deformed_models.py"
FOUND = "deformable convolution"
# What the report must read from the positions: attributes of DeformConv by the number of the form.
ATTRIBUTES = {
    0: {"strides": [1, 1], "dilations": [1, 1], "pads": [1, 1, 1, 1], "group": 1, "offset_group": 1},
    1: {"kernel_shape": [1, 1], "pads": [0, 0, 0, 0]},
    2: {"kernel_shape": [7, 7], "pads": [3, 3, 3, 3], "offset_group": 2},
    3: {"strides": [2, 2], "dilations": [2, 2], "pads": [0, 0, 0, 0], "group": 2},
    4: {"kernel_shape": [3, 5], "strides": [1, 3], "pads": [2, 0, 2, 0]},
    5: {"kernel_shape": [3, 3], "strides": [11, 9], "pads": [0, 0, 0, 0]},  # a result of one row: any stride along y
}


def written(name: str, path: Path) -> Path:
    subprocess.run([sys.executable, str(PROGRAM), name, str(path)], check=True)
    return path


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written("forms", tmp_path_factory.mktemp("forms"))


def test_every_form_becomes_deform_conv(forms: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.onnx"
    files = sorted(forms.iterdir())
    assert len(files) == 2 * len(ATTRIBUTES)
    for before in files:
        report = optimize(before, after)
        assert dict(report.replaced) == {FOUND: 1}, f"{before.name}: {report}"
        assert set(report.differences) == {"with polyop", "without polyop"}
        assert max(report.differences.values()) < 1e-4
        types = nodes(after)
        assert types["polyop::DeformConv"] == 1
        assert types["GatherND"] + types["GatherElements"] + types["Floor"] == 0
        (node,) = [n for n in onnx.load(after).graph.node if n.op_type == "DeformConv"]
        attributes = {a.name: helper.get_attribute_value(a) for a in node.attribute}
        assert attributes.items() >= ATTRIBUTES[int(before.name[0])].items()


def test_sessions_find_every_form(forms: Path) -> None:
    for path in sorted(forms.iterdir()):
        given = {i.name: torch.randn([int(n) for n in i.shape]) for i in provided(path).get_inputs()}
        check(path, [given], tolerance=1e-3)


def test_what_only_resembles_it_stays(forms: Path, tmp_path: Path) -> None:
    """With other positions, without padding for corners outside, and with the weights of two corners exchanged."""
    other, unpadded, exchanged = (onnx.load(forms / "0_GatherND.onnx") for _ in range(3))
    (positions,) = [
        n.attribute[0].t for n in other.graph.node if n.op_type == "Constant" and len(n.attribute[0].t.dims) == 6
    ]
    array = numpy_helper.to_array(positions).copy()
    array[0, 0, 4, 0, 2, 2] += 0.5
    positions.CopyFrom(numpy_helper.from_array(array))
    (pad,) = [n for n in unpadded.graph.node if n.op_type == "Pad"]
    (extents,) = [n.attribute[0].t for n in unpadded.graph.node if n.output[0] == pad.input[1]]
    extents.CopyFrom(numpy_helper.from_array(np.array([0, 0, 2, 2, 0, 0, 0, 0])))
    sum_ = next(n for n in exchanged.graph.node if n.op_type == "Sum")
    first, second = (next(n for n in exchanged.graph.node if n.output[0] == sum_.input[i]) for i in (0, 1))
    first.input[0], second.input[0] = second.input[0], first.input[0]
    for model, why in (
        (other, "expected the positions of a filter"),
        (unpadded, "expected the positions of a filter"),
        (exchanged, "its results differ"),
    ):
        (finding,) = optimize(model).findings
        assert not finding.replaced
        assert why in finding.why, finding.why
    given = {i.name: torch.randn([int(n) for n in i.shape]) for i in provided(exchanged).get_inputs()}
    onnx.save(exchanged, tmp_path / "exchanged.onnx")
    check(tmp_path / "exchanged.onnx", [given], expected=0, tolerance=1e-3)


@pytest.mark.parametrize(("name", "count"), [("BiRefNet's decoder", 16), ("BasicVSR++'s alignment", 3)])
def test_whole_models(name: str, count: int, tmp_path: Path, not_run: Callable[[str], None]) -> None:
    before = written(name, tmp_path / "before.onnx")
    for target in ("onnxruntime", "tensorrt-polyop"):
        report = optimize(before, tmp_path / "after.onnx", target=target)
        assert report.replaced[FOUND] == count, str(report)
        assert max(report.differences.values()) < 1e-4
        assert nodes(tmp_path / "after.onnx")["polyop::DeformConv"] == count
    if not HAS_PLUGINS:
        not_run(NO_ENGINE)
        return
    (answer,) = build_all([{"model": (tmp_path / "after.onnx").read_bytes()}])
    assert [layer["type"] for layer in answer["layers"]].count("PLUGIN_V3") == count, answer
