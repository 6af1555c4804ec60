# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: CumSum."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from polyop.optimizing import optimize
from tests.support.exported import nodes, optimized

KINDS = {np.float32: TensorProto.FLOAT, np.float64: TensorProto.DOUBLE, np.int64: TensorProto.INT64}


def _model(path: Path, x: np.ndarray, axis: int | None, **attributes: int) -> Path:
    infos = [helper.make_tensor_value_info(name, KINDS[x.dtype.type], x.shape) for name in "xy"]
    inputs = [infos[0], helper.make_tensor_value_info("axis", TensorProto.INT64, [])] if axis is None else infos[:1]
    constants = [] if axis is None else [helper.make_tensor("axis", TensorProto.INT64, [], [axis])]
    node = helper.make_node("CumSum", ["x", "axis"], ["y"], **attributes)
    graph = helper.make_graph([node], "g", inputs, infos[1:], constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


@pytest.mark.parametrize(("dtype", "axis", "attributes"), [
    (np.float32, -1, {}), (np.float64, 1, {"reverse": 1}), (np.int64, 1, {"exclusive": 1}),
    (np.float32, -1, {"exclusive": 1, "reverse": 1}),
])  # fmt: skip
def test_cumulative_sums(dtype: type, axis: int, attributes: dict[str, int], tmp_path: Path) -> None:
    x = (np.random.default_rng(0).standard_normal((80, 60)) * 9).astype(dtype)
    after, report = optimized(_model(tmp_path / "before.onnx", x, axis, **attributes), [{"x": torch.from_numpy(x)}])
    assert report.replaced["cumulative sum"] == 1, str(report)
    assert nodes(after) == {"polyop::CumSum": 1}


def test_others_are_kept(tmp_path: Path) -> None:
    few, many = np.zeros((30, 30), np.float32), np.zeros((80, 60), np.float32)
    for x, axis in ((few, 1), (many, None), (many, 0)):
        path = _model(tmp_path / "before.onnx", x, axis)
        report = optimize(path, tmp_path / "after.onnx")
        assert not sum(report.replaced.values()), str(report)
