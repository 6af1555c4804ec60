# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: scatters with a reduction, and orders of integers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from polyop.optimizing import optimize
from tests.support.exported import nodes, optimized

SIZES = (60, 50)


def _kind(x: Any) -> int:
    return helper.np_dtype_to_tensor_dtype(np.dtype(x))


def _model(
    path: Path, node: onnx.NodeProto, inputs: dict[str, np.ndarray], outputs: dict[str, int], k: int = 0
) -> Path:
    ins = [helper.make_tensor_value_info(n, _kind(a.dtype), a.shape) for n, a in inputs.items()]
    outs = [helper.make_tensor_value_info(n, kind, None) for n, kind in outputs.items()]
    constants = [helper.make_tensor("k", TensorProto.INT64, [1], [k])] if "k" in node.input else []
    graph = helper.make_graph([node], "g", ins, outs, constants)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


def _tensors(inputs: dict[str, np.ndarray]) -> list[dict[str, Any]]:
    return [{name: torch.from_numpy(array) for name, array in inputs.items()}]


@pytest.mark.parametrize(("dtype", "reduction", "axis"), [
    (np.float32, "add", 1), (np.float64, "max", 0), (np.int64, "min", -1), (np.float32, "mul", 0),
])  # fmt: skip
def test_scatters(dtype: type, reduction: str, axis: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    data, updates = (np.round(rng.uniform(-2, 2, SIZES), 1).astype(dtype) for _ in range(2))
    inputs = {"data": data, "indices": rng.integers(0, 50, SIZES), "updates": updates}
    node = helper.make_node("ScatterElements", list(inputs), ["y"], axis=axis, reduction=reduction)
    path = _model(tmp_path / "before.onnx", node, inputs, {"y": _kind(dtype)})
    after, report = optimized(path, _tensors(inputs))
    assert report.replaced["reduced scatter"] == 1, str(report)
    assert nodes(after) == {"polyop::ScatterReduce": 1}


@pytest.mark.parametrize(("dtype", "shape", "largest"), [
    (np.int64, (3000,), 0), (np.int32, (20, 500), 1), (np.float32, (4, 30, 100), 0), (np.float64, (7, 900), 1),
    (np.float16, (5, 2000), 0),
])  # fmt: skip
def test_order_of_rows(dtype: type, shape: tuple[int, ...], largest: int, tmp_path: Path) -> None:
    inputs = {"x": np.random.default_rng(0).uniform(-100, 100, shape).astype(dtype)}
    node = helper.make_node("TopK", ["x", "k"], ["values", "order"], largest=largest)
    kinds = {"values": _kind(dtype), "order": TensorProto.INT64}
    path = _model(tmp_path / "before.onnx", node, inputs, kinds, shape[-1])
    after, report = optimized(path, _tensors(inputs))
    assert report.replaced["order of rows"] == 1, str(report)
    assert nodes(after) == {"polyop::Argsort": 1, "GatherElements": 1}


def test_distinct_integers(tmp_path: Path) -> None:
    inputs = {"x": np.random.default_rng(0).integers(-100, 100, 3000)}
    node = helper.make_node("Unique", ["x"], ["values", "", "inverse", "counts"])
    names = ("values", "inverse", "counts")
    path = _model(tmp_path / "before.onnx", node, inputs, dict.fromkeys(names, TensorProto.INT64))
    after, report = optimized(path, _tensors(inputs))
    assert report.replaced["distinct integers"] == 1, str(report)
    assert nodes(after) == {"polyop::CustomUnique": 1}


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("shape", [(3000,), (60, 50), (10, 3, 100)])
def test_indices_of_elements(shape: tuple[int, ...], transposed: bool, tmp_path: Path) -> None:
    x = np.random.default_rng(0).integers(-1, 2, shape)
    y = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    body = [helper.make_node("NonZero", ["x"], ["found"]), helper.make_node("Transpose", ["found"], ["y"])]
    body = body if transposed else [helper.make_node("NonZero", ["x"], ["y"])]
    graph = helper.make_graph(body, "g", [helper.make_tensor_value_info("x", TensorProto.INT64, shape)], [y])
    path = tmp_path / "before.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    after, report = optimized(path, _tensors({"x": x}))
    assert report.replaced["indices of elements"] == 1, str(report)
    assert nodes(after) == {"polyop::NonZero": 1} | ({} if transposed else {"Transpose": 1})


def test_others_are_kept(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    inputs = {"x": rng.integers(-100, 100, 3000)}
    greatest = helper.make_node("TopK", ["x", "k"], ["values", "order"])
    first = helper.make_node("Unique", ["x"], ["values", "first"])
    unsorted = helper.make_node("Unique", ["x"], ["values"], sorted=0)
    written = helper.make_node("ScatterElements", ["x", "at", "x"], ["values"])
    for node in (greatest, first, unsorted, written):
        more = {"at": np.arange(3000)} if "at" in node.input else {}
        outputs = dict.fromkeys(node.output, TensorProto.INT64)
        path = _model(tmp_path / "before.onnx", node, {**inputs, **more}, outputs)
        report = optimize(path, tmp_path / "after.onnx")
        assert not sum(report.replaced.values()), str(report)
