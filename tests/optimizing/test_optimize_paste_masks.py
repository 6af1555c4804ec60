# SPDX-License-Identifier: Apache-2.0
"""polyop optimize: masks that a loop pastes into images, as in torchvision's Mask R-CNN."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.support.exported import nodes, optimized, write

pytestmark = pytest.mark.filterwarnings("ignore")

PATTERN = "mask pasting"


@torch.jit.script
def paste(masks: Tensor, boxes: Tensor, height: int, width: int, past: int) -> Tensor:
    """`past`: 1 if sides include a box's last pixel."""
    pasted = torch.zeros(0, height, width)
    for i in range(masks.size(0)):
        x1, y1, x2, y2 = int(boxes[i, 0]), int(boxes[i, 1]), int(boxes[i, 2]) + past, int(boxes[i, 3]) + past
        size = [max(y2 - y1, 1), max(x2 - x1, 1)]
        large = F.interpolate(masks[i : i + 1], size=size, mode="bilinear", align_corners=False)[0, 0]
        top, left, bottom, right = max(y1, 0), max(x1, 0), min(y2, height), min(x2, width)
        large = large[top - y1 : bottom - y1, left - x1 : right - x1]
        between = torch.cat([torch.zeros(top, right - left), large, torch.zeros(height - bottom, right - left)], 0)
        image = torch.cat([torch.zeros(height, left), between, torch.zeros(height, width - right)], 1)
        pasted = torch.cat([pasted, image[None]])
    return pasted


class Pasting(nn.Module):
    def __init__(self, past: int = 1) -> None:
        super().__init__()
        self.past = past

    def forward(self, masks: Tensor, boxes: Tensor) -> Tensor:
        return paste(masks.sigmoid(), boxes.to(torch.int64), 40, 56, self.past)[:, None]


def detections(count: int) -> dict[str, Tensor]:
    """Returns boxes inside and partly outside; the first is a single pixel."""
    generator = torch.Generator().manual_seed(count)
    corner = torch.rand(count, 2, generator=generator) * torch.tensor([50.0, 34.0]) - 3
    boxes = torch.cat([corner, corner + 4 + torch.rand(count, 2, generator=generator) * 40], 1)
    boxes = boxes.minimum(torch.tensor([60.0, 60.0, 58.0, 42.0]))
    boxes[0] = torch.tensor([7.0, 9.0, 7.0, 9.0])
    return {"masks": torch.randn(count, 1, 14, 12, generator=generator), "boxes": boxes}


def exported(folder: Path, past: int = 1) -> Path:
    dynamic = {"masks": {0: "n"}, "boxes": {0: "n"}}
    return write(Pasting(past), detections(5), folder / "before.onnx", "torchscript", dynamic)


@pytest.mark.parametrize("mode", ["half_pixel", "pytorch_half_pixel"])
def test_pasting(mode: str, tmp_path: Path) -> None:
    before = exported(tmp_path)
    model = onnx.load(before)
    (loop,) = [node for node in model.graph.node if node.op_type == "Loop"]
    (resize,) = [node for node in loop.attribute[0].g.node if node.op_type == "Resize"]
    (stated,) = [a for a in resize.attribute if a.name == "coordinate_transformation_mode"]
    stated.s = mode.encode()
    onnx.save(model, before)
    after, report = optimized(before, [detections(5), detections(20), detections(1)])
    assert dict(report.replaced) == {PATTERN: 1}, str(report)
    assert nodes(after)["Loop"] == nodes(after)["Resize"] == 0
    assert nodes(after)["MatMul"] == 2


def test_other_sizes_are_kept(tmp_path: Path) -> None:
    """Sides do not include the last pixel, so sizes differ from those that the pattern expects."""
    _, report = optimized(exported(tmp_path, past=0), [detections(5)])
    (finding,) = report.findings
    assert not finding.replaced
    assert "differ" in finding.why
