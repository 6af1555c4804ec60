# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: products of matrices with vectors, and Gather along the last dimension."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from polyop.optimizing import optimize
from tests.support.exported import nodes, optimized


def _model(path: Path, op_type: str, shapes: list[tuple[int, ...] | None], second: int, **attributes: int) -> Path:
    types = [TensorProto.FLOAT, second, TensorProto.FLOAT]
    infos = [helper.make_tensor_value_info(n, t, s) for n, t, s in zip("abc", types, shapes, strict=True)]
    node = helper.make_node(op_type, ["a", "b"], ["c"], **attributes)
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def _random(*shape: int) -> torch.Tensor:
    return torch.from_numpy(np.random.default_rng(0).standard_normal(shape).astype(np.float32))


@pytest.mark.parametrize("matrix", [(60, 40), (3, 50, 40)])
def test_matrix_times_vector(matrix: tuple[int, ...], tmp_path: Path) -> None:
    path = _model(tmp_path / "before.onnx", "MatMul", [matrix, (40,), matrix[:-1]], TensorProto.FLOAT)
    after, report = optimized(path, [{"a": _random(*matrix), "b": _random(40)}])
    assert report.replaced["matrix times vector"] == 1, str(report)
    assert nodes(after)["MatMul"] == 1


@pytest.mark.parametrize(
    ("a", "b", "c"), [((60, 40), (40, 1), (60, 1)), ((60,), (60, 40), (40,)), ((4, 4), (4,), (4,))]
)
def test_other_products_are_kept(a: tuple[int, ...], b: tuple[int, ...], c: tuple[int, ...], tmp_path: Path) -> None:
    path = _model(tmp_path / "before.onnx", "MatMul", [a, b, c], TensorProto.FLOAT)
    assert optimize(path, tmp_path / "after.onnx").replaced["matrix times vector"] == 0


@pytest.mark.parametrize("axis", [2, -1])
def test_gather_along_the_last_dimension(axis: int, tmp_path: Path) -> None:
    index = torch.tensor([0, 39, -1, -40, 7, 7, 8, 30, 2, 1, 1])
    path = _model(tmp_path / "before.onnx", "Gather", [(3, 50, 40), (11,), None], TensorProto.INT64, axis=axis)
    after, report = optimized(path, [{"a": _random(3, 50, 40), "b": index}])
    assert report.replaced["gather along the last dimension"] == 1, str(report)
    assert nodes(after)["GatherElements"] == 1


@pytest.mark.parametrize(("index", "axis"), [((11,), 1), ((3,), 2), ((2, 6), 2)])
def test_other_gathers_are_kept(index: tuple[int, ...], axis: int, tmp_path: Path) -> None:
    path = _model(tmp_path / "before.onnx", "Gather", [(3, 50, 40), index, None], TensorProto.INT64, axis=axis)
    assert optimize(path, tmp_path / "after.onnx").replaced["gather along the last dimension"] == 0
