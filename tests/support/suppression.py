# SPDX-License-Identifier: Apache-2.0
"""Modules that write suppression as a loop, and detections for them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from tests.support.exported import write

NODE = "mmcv::NonMaxSuppression"
PATTERN = "greedy suppression"


def pairs(boxes: Tensor) -> Tensor:
    """Returns the IoU of every pair of boxes."""
    area = (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])
    near = torch.max(boxes[:, None, :2], boxes[None, :, :2])
    far = torch.min(boxes[:, None, 2:], boxes[None, :, 2:])
    sides = (far - near).clamp(min=0)
    shared = sides[..., 0] * sides[..., 1]
    return shared / (area[:, None] + area[None] - shared)


class Scripted(nn.Module):
    def __init__(self, suppress: Callable[..., Tensor], threshold: float = 0.5) -> None:
        super().__init__()
        self.suppress, self.threshold = suppress, threshold

    def forward(self, boxes: Tensor, scores: Tensor) -> Tensor:
        return self.suppress(boxes * 2.0, scores, self.threshold)


def detections(count: int) -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(count)
    corner = torch.rand(count, 2, generator=generator) * 30
    sides = torch.rand(count, 2, generator=generator) * 15 + 1
    scores = torch.randperm(count, generator=generator) / count
    return {"boxes": torch.cat([corner, corner + sides], 1), "scores": scores}


def halves(count: int) -> dict[str, Tensor]:
    return {name: tensor.half() for name, tensor in detections(count).items()}


def scripted(
    suppress: Callable[..., Tensor], threshold: float, folder: Path,
    given: Callable[[int], dict[str, Tensor]] = detections,
) -> Path:  # fmt: skip
    module = torch.jit.script(Scripted(suppress, threshold))
    dynamic = {"boxes": {0: "n"}, "scores": {0: "n"}}
    return write(module, given(60), folder / "before.onnx", "torchscript", dynamic)
