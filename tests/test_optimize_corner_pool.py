"""polyop optimize: corner pooling as a loop over rows or columns, in both exporters' graphs."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from exported import nodes, optimized, write
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "mmcv::MMCVCornerPool"
PATTERN = "corner pooling"


class Pool(nn.Module):
    def __init__(self, axis: int, forward: bool, skip: int = 0) -> None:
        super().__init__()
        self.axis, self.is_forward, self.skip = axis, forward, skip

    def forward(self, x: Tensor) -> Tensor:
        x = x * 1.5
        places = list(range(x.shape[self.axis]))
        if not self.is_forward:
            places.reverse()
        row = x.select(self.axis, places[0])
        rows = [row]
        for place in places[1:]:
            row = torch.maximum(row, x.select(self.axis, max(place - self.skip, 0)))
            rows.append(row)
        return torch.stack(rows if self.is_forward else rows[::-1], self.axis)


def inputs() -> dict[str, Tensor]:
    return {"x": torch.randn(2, 3, 6, 9, generator=torch.Generator().manual_seed(0))}


@pytest.mark.parametrize(
    ("module", "exporter"),
    [
        *((Pool(axis, forward), "torchscript") for axis in (2, 3) for forward in (True, False)),
        (Pool(2, False), "dynamo"),
    ],
    ids=["bottom", "top", "right", "left", "top, dynamo"],
)
def test_corner_pool(module: Pool, exporter: str, tmp_path: Path) -> None:
    before = write(module, inputs(), tmp_path / "before.onnx", exporter)
    after, report = optimized(before, [inputs()], tolerance=0)
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    left = nodes(after)
    assert left[NODE] == 1
    assert left["Max"] + left["Gather"] + left["Concat"] == 0


def test_another_order_stays(tmp_path: Path) -> None:
    """Rows that are taken one too late are no running maximum."""
    before = write(Pool(2, True, skip=1), inputs(), tmp_path / "before.onnx", "torchscript")
    _, report = optimized(before, [inputs()])
    assert report.replaced[PATTERN] == 0
