# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: softmax along a dimension that at least two others follow."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from onnx import TensorProto, helper

from polyop.optimizing import optimize
from tests.support.exported import nodes, optimized

PATTERN = "softmax over channels"
SHAPE = (2, 21, 24, 40)


def _model(path: Path, op_type: str, axis: int | None, opset: int = 17) -> Path:
    given = {} if axis is None else {"axis": axis}
    node = helper.make_node(op_type, ["x"], ["y"], **given)
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, SHAPE) for name in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8), path)
    return path


@pytest.mark.parametrize("op_type", ["Softmax", "LogSoftmax"])
@pytest.mark.parametrize("axis", [0, 1, -3])
def test_softmax_over_channels(op_type: str, axis: int, tmp_path: Path) -> None:
    given = {"x": torch.randn(SHAPE, generator=torch.Generator().manual_seed(0)) * 9}
    after, report = optimized(_model(tmp_path / "before.onnx", op_type, axis), [given])
    assert report.replaced[PATTERN] == 1, str(report)
    assert nodes(after) == {f"polyop::{op_type}": 1}


@pytest.mark.parametrize(("axis", "opset"), [(-1, 17), (3, 17), (-2, 17), (None, 17), (1, 11)])
def test_the_last_dimensions_and_older_opsets_are_kept(axis: int | None, opset: int, tmp_path: Path) -> None:
    report = optimize(_model(tmp_path / "before.onnx", "Softmax", axis, opset), tmp_path / "after.onnx")
    assert report.replaced[PATTERN] == 0
