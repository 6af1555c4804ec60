"""polyop optimize: corner pooling as a loop over rows or columns, by doubled steps and by cummax, in both exporters' graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from exported import nodes, optimized, write
from openmmlab import mmcv_ops
from torch import Tensor, nn

import polyop

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "mmcv::MMCVCornerPool"
PATTERN = "corner pooling"


class Pool(nn.Module):
    def __init__(self, axis: int, forward: bool, skip: int = 0, lowest: bool = False, inner: bool = False) -> None:
        super().__init__()
        self.axis, self.is_forward, self.skip, self.factor = axis, forward, skip, None if inner else 1.5
        self.extremum = torch.minimum if lowest else torch.maximum

    def forward(self, x: Tensor) -> Tensor:
        x = x if self.factor is None else x * self.factor
        places = list(range(x.shape[self.axis]))
        if not self.is_forward:
            places.reverse()
        row = x.select(self.axis, places[0])
        rows = [row]
        for place in places[1:]:
            row = self.extremum(row, x.select(self.axis, max(place - self.skip, 0)))
            rows.append(row)
        return torch.stack(rows if self.is_forward else rows[::-1], self.axis)


class Doubled(nn.Module):
    """Doubled steps that write into slices, as MMCV's do: only the dynamo exporter keeps that. joined: without writing."""

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
    """A running maximum of what is flipped, flipped back: by an operator or by another module."""

    def __init__(self, axis: int, running: nn.Module | None = None) -> None:
        super().__init__()
        self.axis, self.running = axis, running

    def forward(self, x: Tensor) -> Tensor:
        x = (x * 1.5).flip(self.axis)
        return (polyop.cummax(x, self.axis)[0] if self.running is None else self.running(x)).flip(self.axis) + 1


class Along(nn.Module):
    """places: the places of the maxima are read, too."""

    def __init__(self, axis: int, places: bool = False) -> None:
        super().__init__()
        self.axis, self.places = axis, places

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        values, places = polyop.cummax(x * 1.5, self.axis)
        return (values + 1, places + 1) if self.places else (values + 1,)


def inputs() -> dict[str, Tensor]:
    return {"x": torch.randn(2, 3, 6, 9, generator=torch.Generator().manual_seed(0))}


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
    before = write(module, inputs(), tmp_path / "before.onnx", exporter)
    after, report = optimized(before, [inputs()], tolerance=0)
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    left = nodes(after)
    assert left[NODE] == 1
    rest = ("Max", "Min", "Gather", "Concat", "Slice", "ScatterND", "mmcv::cummax")
    assert sum(left[op_type] for op_type in rest) == 0


@pytest.mark.parametrize("module", [Along(3, places=True), Along(1), Doubled(2, True, joined=True, first=2)])
def test_others_stay(module: nn.Module, tmp_path: Path) -> None:
    """Places that are read, channels, and steps that leave every other row out."""
    before = write(module, inputs(), tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [inputs()])
    assert not report.replaced


def test_another_order_stays(tmp_path: Path) -> None:
    """Rows that are taken one too late are no running maximum."""
    before = write(Pool(2, True, skip=1), inputs(), tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [inputs()])
    assert report.replaced[PATTERN] == 0
