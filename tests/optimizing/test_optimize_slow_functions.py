# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: functions for which ONNX Runtime calls a function for each element."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper

from polyop.optimizing import optimize
from tests.support.exported import nodes, optimized

PATTERN = "slow functions of elements"


def _model(path: Path, op_type: str, shape: tuple[int, ...], dtype: int = TensorProto.FLOAT) -> Path:
    infos = [helper.make_tensor_value_info(name, dtype, shape) for name in "xy"]
    graph = helper.make_graph([helper.make_node(op_type, ["x"], ["y"])], "g", infos[:1], infos[1:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    return path


@pytest.mark.parametrize("op_type", ["Tan", "Sinh", "Cosh", "Atanh", "Softplus", "Mish"])
def test_slow_functions(op_type: str, tmp_path: Path) -> None:
    low, high = (-0.99, 0.99) if op_type == "Atanh" else (-9, 9)
    x = torch.from_numpy(np.random.default_rng(0).uniform(low, high, (3, 40, 50)).astype(np.float32))
    after, report = optimized(_model(tmp_path / "before.onnx", op_type, (3, 40, 50)), [{"x": x}])
    has_name = op_type not in ("Softplus", "Mish")
    assert report.replaced[op_type if has_name else PATTERN] == 1, str(report)
    assert nodes(after) == {f"polyop::{op_type}" if has_name else "polyop::SpecialUnary": 1}


@pytest.mark.parametrize(("op_type", "shape", "dtype"), [
    ("Tan", (900,), TensorProto.FLOAT), ("Tan", (3000,), TensorProto.FLOAT16),
    ("Softplus", (3000,), TensorProto.FLOAT16), ("Tanh", (3000,), TensorProto.FLOAT),
])  # fmt: skip
def test_few_elements_and_other_types_are_kept(
    op_type: str, shape: tuple[int, ...], dtype: int, tmp_path: Path
) -> None:
    report = optimize(_model(tmp_path / "before.onnx", op_type, shape, dtype), tmp_path / "after.onnx")
    assert not any(report.replaced.values()), str(report)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_remainders(dtype: type, tmp_path: Path) -> None:
    rng, kind = np.random.default_rng(0), helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    infos = [helper.make_tensor_value_info(name, kind, (3, 40, 50)) for name in "aby"]
    node = helper.make_node("Mod", ["a", "b"], ["y"], fmod=1)
    graph = helper.make_graph([node], "g", infos[:2], infos[2:])
    path = tmp_path / "before.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    a, b = (torch.from_numpy(rng.uniform(-9, 9, (3, 40, 50)).astype(dtype)) for _ in range(2))
    after, report = optimized(path, [{"a": a, "b": b}])
    assert report.replaced[PATTERN] == 1, str(report)
    assert nodes(after) == {"polyop::SpecialBinary": 1}


class Logit(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.logit(x, 1e-5) + x


def test_logit(tmp_path: Path) -> None:
    x = torch.rand(3, 40, 50, generator=torch.Generator().manual_seed(0))
    path = tmp_path / "before.onnx"
    torch.onnx.export(Logit().eval(), (x,), path, dynamo=True, verbose=False)
    after, report = optimized(path, [{"x": x}])
    assert report.replaced[PATTERN] == 1, str(report)
    assert nodes(after)["polyop::SpecialUnary"] == 1
    assert not {"Log", "Div", "Sub"} & set(nodes(after))


@pytest.mark.parametrize("changed", ["one", "numerator"])
def test_other_logarithms_of_quotients_are_kept(changed: str, tmp_path: Path) -> None:
    infos = [helper.make_tensor_value_info(name, TensorProto.FLOAT, (3000,)) for name in "xyz"]
    one = helper.make_tensor("one", TensorProto.FLOAT, [], [2 if changed == "one" else 1])
    graph = helper.make_graph(
        [
            helper.make_node("Sub", ["one", "x"], ["rest"]),
            helper.make_node("Div", ["y" if changed == "numerator" else "x", "rest"], ["ratio"]),
            helper.make_node("Log", ["ratio"], ["z"]),
        ],
        "g",
        infos[:2],
        infos[2:],
        [one],
    )
    path = tmp_path / "before.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8), path)
    assert optimize(path, tmp_path / "after.onnx").replaced[PATTERN] == 0
