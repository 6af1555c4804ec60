# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: bilinear grid sampling in plain torch, MMCV's own and another, in graphs of both exporters."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest
from torch import Tensor, nn

from tests.support.exported import EXPORTERS, nodes, optimized, write
from tests.support.openmmlab import mmcv_ops
from tests.support.optimizable import Sample, grid_sample_inputs

pytestmark = pytest.mark.filterwarnings("ignore")

NODE = "polyop::GridSample"
PATTERN = "grid sampling"


class OfMmcv(nn.Module):
    """MMCV's own function, which its point_sample calls during export."""

    def __init__(self, aligned: bool) -> None:
        super().__init__()
        self.aligned = aligned
        with mmcv_ops():
            self.sample = import_module("mmcv.ops.point_sample").bilinear_grid_sample

    def forward(self, image: Tensor, grid: Tensor) -> Tensor:
        return self.sample(image * 1.5, grid, self.aligned)


@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("aligned", [False, True])
@pytest.mark.parametrize("kind", [Sample, OfMmcv])
def test_grid_sample(kind: Callable[[bool], nn.Module], aligned: bool, exporter: str, tmp_path: Path) -> None:
    dynamic = {"image": {2: "h", 3: "w"}, "grid": {1: "rows"}} if exporter == "torchscript" and aligned else None
    before = write(kind(aligned), grid_sample_inputs(), tmp_path / "before.onnx", exporter, dynamic)
    after, report = optimized(before, [grid_sample_inputs(), *([grid_sample_inputs(12, 20)] if dynamic else [])])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    left = nodes(after)
    assert left[NODE] == 1
    assert left["GatherElements"] + left["Pad"] == 0


def test_another_border_is_kept(tmp_path: Path) -> None:
    before = write(Sample(False, border=0.5), grid_sample_inputs(), tmp_path / "before.onnx", "torchscript")
    after, report = optimized(before, [grid_sample_inputs()])
    (finding,) = report.findings
    assert "differ" in finding.why
    assert nodes(after)[NODE] == 0
