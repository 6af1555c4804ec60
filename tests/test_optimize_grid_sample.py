"""polyop optimize: bilinear grid sampling in plain torch, MMCV's own and another, in both exporters' graphs."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
import torch
from exported import EXPORTERS, nodes, optimized, write
from openmmlab import mmcv_ops
from torch import Tensor, nn

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "polyop::GridSample"
PATTERN = "grid sampling"


class Sample(nn.Module):
    """border: the value around the picture."""

    def __init__(self, aligned: bool, border: float = 0) -> None:
        super().__init__()
        self.aligned, self.border = aligned, border

    def pixels(self, at: Tensor, extent: int) -> Tensor:
        return (at + 1) / 2 * (extent - 1) if self.aligned else ((at + 1) * extent - 1) / 2

    def clamp(self, place: Tensor, extent: int) -> Tensor:
        last = torch.tensor(extent - 1)
        return torch.where(place < 0, torch.tensor(0), torch.where(place > last, last, place))

    def forward(self, picture: Tensor, grid: Tensor) -> Tensor:
        picture = picture * 1.5
        n, c, h, w = picture.shape
        x = self.pixels(grid[..., 0], w).reshape(n, -1)
        y = self.pixels(grid[..., 1], h).reshape(n, -1)
        x0, y0 = x.floor().long(), y.floor().long()
        right, low = x - x0, y - y0
        flat = nn.functional.pad(picture, [1, 1, 1, 1], value=self.border).reshape(n, c, -1)

        def corner(x: Tensor, y: Tensor) -> Tensor:
            place = self.clamp(y + 1, h + 2) * (w + 2) + self.clamp(x + 1, w + 2)
            return flat.gather(2, place.unsqueeze(1).expand(-1, c, -1))

        upper = corner(x0, y0) * ((1 - right) * (1 - low)).unsqueeze(1)
        upper = upper + corner(x0 + 1, y0) * (right * (1 - low)).unsqueeze(1)
        lower = corner(x0, y0 + 1) * ((1 - right) * low).unsqueeze(1)
        lower = lower + corner(x0 + 1, y0 + 1) * (right * low).unsqueeze(1)
        return (upper + lower).reshape(n, c, grid.shape[1], grid.shape[2])


class OfMmcv(nn.Module):
    """MMCV's own function, which its point_sample calls when a model is exported."""

    def __init__(self, aligned: bool) -> None:
        super().__init__()
        self.aligned = aligned
        with mmcv_ops():
            self.sample = import_module("mmcv.ops.point_sample").bilinear_grid_sample

    def forward(self, picture: Tensor, grid: Tensor) -> Tensor:
        return self.sample(picture * 1.5, grid, self.aligned)


def inputs(height: int = 9, width: int = 7) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(height)
    return {
        "picture": torch.randn(2, 3, height, width, generator=generator),
        "grid": torch.rand(2, width, 5, 2, generator=generator) * 2.6 - 1.3,
    }


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("kind", [Sample, OfMmcv])
def test_grid_sample(kind: Callable[[bool], nn.Module], aligned: bool, exporter: str, tmp_path: Path) -> None:
    dynamic = {"picture": {2: "h", 3: "w"}, "grid": {1: "rows"}} if exporter == "torchscript" and aligned else None
    before = write(kind(aligned), inputs(), tmp_path / "before.onnx", exporter, dynamic)
    after, report = optimized(before, [inputs(), *([inputs(12, 20)] if dynamic else [])])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    left = nodes(after)
    assert left[NODE] == 1
    assert left["GatherElements"] + left["Pad"] == 0


def test_another_border_stays(tmp_path: Path) -> None:
    before = write(Sample(False, border=0.5), inputs(), tmp_path / "before.onnx", "torchscript")
    after, report = optimized(before, [inputs()])
    (finding,) = report.findings
    assert "differs" in finding.why
    assert nodes(after)[NODE] == 0
