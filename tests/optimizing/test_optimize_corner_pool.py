# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: corner pooling as a loop over rows or columns, with doubled steps and with cummax, in graphs of both
exporters.
"""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
from torch import Tensor, nn

import polyop
from tests.support.exported import nodes, optimized, write
from tests.support.openmmlab import mmcv_ops
from tests.support.optimizable import Pool, corner_pool_inputs

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "mmcv::MMCVCornerPool"
PATTERN = "corner pooling"


class Doubled(nn.Module):
    """Doubled steps that write into slices, as in MMCV: only the dynamo exporter keeps that.

    `joined`: without writing.
    """

    def __init__(self, axis: int, forward: bool, joined: bool, first: int = 1) -> None:
        super().__init__()
        self.axis, self.is_forward, self.joined, self.first = axis, forward, joined, first

    def forward(self, x: Tensor) -> Tensor:
        y, extent, step = x * 1.5, x.shape[self.axis], self.first
        while step < extent:
            ends = y.narrow(self.axis, 0, extent - step), y.narrow(self.axis, step, extent - step)
            kept = y.narrow(self.axis, 0 if self.is_forward else extent - step, step)
            if self.joined:
                larger = torch.maximum(*ends)
                y = torch.cat([kept, larger] if self.is_forward else [larger, kept], self.axis)
            else:
                now, other = reversed(ends) if self.is_forward else ends
                now[...] = torch.where(now.clone() > other, now.clone(), other)
            step *= 2
        return y + 1


class OfMmcv(nn.Module):
    """MMCV's own function, as it runs without cummax."""

    def __init__(self, axis: int, flip: bool) -> None:
        super().__init__()
        self.axis, self.flip = axis, flip
        with mmcv_ops() as ops:
            self.pool = ops.corner_pool._corner_pool

    def forward(self, x: Tensor) -> Tensor:
        return self.pool(x * 1.5, self.axis, self.flip) + 1


class Flipped(nn.Module):
    """A running maximum of a flipped tensor, flipped back: computed by an operator or by another module."""

    def __init__(self, axis: int, running: nn.Module | None = None) -> None:
        super().__init__()
        self.axis, self.running = axis, running

    def forward(self, x: Tensor) -> Tensor:
        x = (x * 1.5).flip(self.axis)
        return (polyop.cummax(x, self.axis)[0] if self.running is None else self.running(x)).flip(self.axis) + 1


class Along(nn.Module):
    """`positions`: the positions of the maxima are outputs, too."""

    def __init__(self, axis: int, positions: bool = False) -> None:
        super().__init__()
        self.axis, self.positions = axis, positions

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        values, positions = polyop.cummax(x * 1.5, self.axis)
        return (values + 1, positions + 1) if self.positions else (values + 1,)


@pytest.mark.parametrize(
    ("module", "exporter"),
    [
        *((Pool(axis, forward), "torchscript") for axis in (2, 3) for forward in (True, False)),
        (Pool(2, False), "dynamo"),
        (Pool(3, True, lowest=True), "torchscript"),
        (Flipped(3, Pool(3, True, inner=True)), "dynamo"),
        *((Doubled(axis, forward, joined=False), "dynamo") for axis in (2, 3) for forward in (True, False)),
        (OfMmcv(3, True), "dynamo"),
        (Doubled(2, True, joined=True), "torchscript"),
        (Doubled(3, False, joined=True), "dynamo"),
        *((Flipped(axis), exporter) for axis, exporter in ((2, "torchscript"), (3, "dynamo"))),
        (Along(2), "torchscript"),
    ],
    ids=[
        "bottom", "top", "right", "left", "top, dynamo", "minimum", "flipped", "bottom, doubled", "top, doubled",
        "right, doubled", "left, doubled", "left, MMCV's", "bottom, doubled and joined", "left, doubled and joined", "top, cummax",
        "left, cummax", "bottom, cummax",
    ],
)  # fmt: skip
def test_corner_pool(module: nn.Module, exporter: str, tmp_path: Path) -> None:
    before = write(module, corner_pool_inputs(), tmp_path / "before.onnx", exporter)
    after, report = optimized(before, [corner_pool_inputs()], tolerance=0)
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    left = nodes(after)
    assert left[NODE] == 1
    rest = ("Max", "Min", "Gather", "Concat", "Slice", "ScatterND", "mmcv::cummax")
    assert sum(left[op_type] for op_type in rest) == 0


@pytest.mark.parametrize("module", [Along(3, positions=True), Along(1), Doubled(2, True, joined=True, first=2)])
def test_other_graphs_are_kept(module: nn.Module, tmp_path: Path) -> None:
    """Outputs of positions, channels, and steps that skip every other row."""
    before = write(module, corner_pool_inputs(), tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [corner_pool_inputs()])
    assert not report.replaced


def test_another_order_is_kept(tmp_path: Path) -> None:
    """Rows that are read one too late give no running maximum."""
    before = write(Pool(2, True, skip=1), corner_pool_inputs(), tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [corner_pool_inputs()])
    assert report.replaced[PATTERN] == 0


@pytest.mark.parametrize("extent", ["static", "dynamic"])
def test_a_loop_unrolled_for_some_rows(extent: str, tmp_path: Path) -> None:
    """Eight rows are pooled and joined: corner pooling of an image of eight rows alone, or of the first of more."""
    given = {"x": torch.randn(2, 3, 8, 9, generator=torch.Generator().manual_seed(0))}
    before = write(Pool(2, True), given, tmp_path / "before.onnx", "torchscript")
    model = onnx.load(before)
    if extent == "dynamic":
        for info in (*model.graph.input, *model.graph.output):
            info.type.tensor_type.shape.dim[2].dim_param = "rows"
        del model.graph.value_info[:]
        onnx.save(model, before)
    sizes = [given] if extent == "static" else [given, {"x": torch.randn(2, 3, 13, 9)}]
    _, report = optimized(before, sizes, tolerance=0)
    assert report.replaced[PATTERN] == (1 if extent == "static" else 0), str(report)
