# SPDX-License-Identifier: Apache-2.0
"""polyop.executorch: operators in files of ExecuTorch. test_tvm_ffi.py runs the examples of the page on both."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from executorch.backends.xnnpack.partition.xnnpack_partitioner import XnnpackPartitioner
from torch.export import Dim

import polyop.executorch as pe
from polyop._arrays.calls import operators
from tests.support.array_calls import plain_calls
from tests.support.exported_nodes import Node
from tests.support.processes import ROOT, environment

# ExecuTorch's compiler does not parse the first one's list of defaults. Inputs of the others determine shapes, which
# have no upper bound.
NOT_WRITTEN = {
    "bicubic_interpolate",
    "cubic_resize",
    "dynamic_resize",
    "get_indice_pairs_implicit_gemm",
    "knn_query",
    "quantized_cubic_resize",
}


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, image: torch.Tensor, rois: torch.Tensor, scores: torch.Tensor) -> tuple[torch.Tensor, ...]:
        keep = torch.ops.polyop.nms(rois[:, 1:], scores, iou_threshold=0.5)
        pooled = torch.ops.polyop.roi_align(self.features(image), rois[keep], output_height=7, output_width=7)
        return pooled, keep


@pytest.fixture
def inputs() -> tuple[torch.Tensor, ...]:
    torch.manual_seed(0)
    corners = torch.rand(50, 2) * 20
    rois = torch.cat([torch.zeros(50, 1), corners, corners + 5 + torch.rand(50, 2) * 20], 1)
    return torch.rand(1, 3, 64, 64), rois, torch.rand(50)


@pytest.mark.parametrize("partitioner", [None, [XnnpackPartitioner()]], ids=["portable", "xnnpack"])
def test_head(inputs: tuple[torch.Tensor, ...], partitioner: object, tmp_path: Path) -> None:
    """The number of boxes is that of the call, with fewer boxes than the file was written for, too."""
    model, n = Head(), Dim("n", max=80)
    file = pe.export(
        model,
        inputs,
        tmp_path / "head.pte",
        dynamic_shapes={"image": None, "rois": {0: n}, "scores": {0: n}},
        partitioner=partitioner,
    )
    method = pe.load(file)
    for count in (80, 7, 1):
        rois, scores = (t.repeat(2, *[1] * (t.ndim - 1))[:count].contiguous() for t in inputs[1:])
        with torch.no_grad():
            expected = model(inputs[0], rois, scores)
        for result, correct in zip(method.execute((inputs[0], rois, scores)), expected, strict=True):
            torch.testing.assert_close(result, correct, rtol=1e-4, atol=1e-4)
    assert [file.name for file in tmp_path.iterdir()] == ["head.pte"]


def cases() -> list[tuple[str, Node]]:
    """Returns one call of each operator that plain calls have, without inputs that are left out."""
    first: dict[str, tuple[str, Node]] = {}
    for op, node in plain_calls():
        if op not in NOT_WRITTEN and all(a is not None for a in node.inputs):
            first.setdefault(op, (op, node))
    return list(first.values())


class Call(torch.nn.Module):
    """A call of an operator, whose last inputs may be left out."""

    def __init__(self, op: str, attributes: dict[str, Any]) -> None:
        super().__init__()
        self.op, self.attributes = op, attributes

    def forward(self, *given: torch.Tensor) -> object:
        left_out = [None] * (len(operators()[self.op]["inputs"]) - len(given))
        return getattr(torch.ops.polyop, self.op)(*given, *left_out, **self.attributes)


@pytest.mark.parametrize("shard", [*range(4), *(pytest.param(shard, marks=pytest.mark.slow) for shard in range(4, 8))])
def test_equals_torch(shard: int, tmp_path: Path) -> None:
    for op, node in cases()[shard::8]:
        choices = {a["name"]: a["choices"] for a in operators()[op]["attributes"] if a["choices"]}
        attributes = {
            name: choices[name][value] if name in choices and not isinstance(value, str) else value
            for name, value in node.attributes.items()
        }

        given = [torch.from_numpy(np.ascontiguousarray(a)) for a in node.inputs]
        file = pe.export(Call(op, attributes), given, tmp_path / f"{op}.pte")
        assert file.stat().st_size > 0  # the outputs were compared


def test_refused_calls(inputs: tuple[torch.Tensor, ...], tmp_path: Path) -> None:
    """The method fails, and ExecuTorch's log has the message."""

    class Pool(torch.nn.Module):
        def forward(self, image: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
            return torch.ops.polyop.roi_align(image, rois, output_height=2, output_width=2)

    file = pe.export(Pool(), inputs[:2], tmp_path / "pool.pte", dynamic_shapes=({}, {0: Dim("n", max=80)}))
    code = (
        "import torch, polyop.executorch as pe\n"
        f"pe.load({str(file)!r}).execute((torch.rand(1, 3, 64, 64), torch.tensor([[7.0, 0, 0, 4, 4]])))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment(ROOT / "python"), capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "error 0x12" in done.stderr
    assert "polyop::roi_align: 'rois'[0, 0]: expected a batch index in [0, 1), got 7" in done.stderr, done.stderr


def test_wrong_outputs_leave_no_file(tmp_path: Path) -> None:
    class Shifted(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + (1 if torch.compiler.is_exporting() else 0)

    with pytest.raises(pe.ExecuTorchError, match=r"^sum\.pte: output 0 differs from PyTorch's by 1$"):
        pe.export(Shifted(), torch.zeros(3), tmp_path / "sum.pte")
    assert not list(tmp_path.iterdir())
