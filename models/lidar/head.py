# SPDX-License-Identifier: Apache-2.0
"""The end of the detectors: classes, boxes and directions of anchors, decoding, the best of them, and suppression."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

import polyop

ANCHORS = [3.9, 1.6, 1.56, 0.0, 3.9, 1.6, 1.56, 1.57,
           0.8, 0.6, 1.73, 0.0, 0.8, 0.6, 1.73, 1.57,
           1.76, 0.6, 1.73, 0.0, 1.76, 0.6, 1.73, 1.57]  # fmt: skip
BOTTOMS = [-1.78, -0.6, -0.6]
CLASSES = len(BOTTOMS)
ANCHORS_A_CELL = len(ANCHORS) // 4


class AnchorHead(nn.Module):
    def __init__(
        self,
        channels: int,
        range: Sequence[float],
        candidates: int,
        score_threshold: float = 0.1,
        iou_threshold: float = 0.01,
    ) -> None:
        super().__init__()
        self.range, self.candidates = list(range), candidates
        self.score_threshold, self.iou_threshold = score_threshold, iou_threshold
        self.score = nn.Conv2d(channels, ANCHORS_A_CELL * CLASSES, 1)
        self.box = nn.Conv2d(channels, ANCHORS_A_CELL * 7, 1)
        self.direction = nn.Conv2d(channels, ANCHORS_A_CELL * 2, 1)
        for layer in (self.box, self.direction):
            nn.init.normal_(layer.weight, std=0.02)  # boxes near their anchors
        nn.init.normal_(self.score.weight, std=0.1)
        nn.init.constant_(self.score.bias, -2.8)  # few anchors pass, as in a trained network

    def forward(self, x: Tensor) -> Tensor:
        """[1, C, H, W] -> [K, 9] (x, y, z, dx, dy, dz, yaw, class, score) by descending score; rows with score 0 are
        padding.
        """
        maps = [head(x).permute(0, 2, 3, 1) for head in (self.score, self.box, self.direction)]
        boxes, _ = torch.ops.polyop.decode_bbox3d(
            *maps, point_cloud_range=self.range, anchors=ANCHORS, anchor_bottom_height=BOTTOMS, dir_offset=0.785398,
            dir_limit_offset=0.0, num_dir_bins=2, score_thresh=self.score_threshold,
        )  # fmt: skip
        best = boxes[0][boxes[0, :, 8].topk(self.candidates).indices]
        kept = polyop.nms3d(best[:, :7], best[:, 8], self.iou_threshold)
        return best[kept]


@torch.no_grad()
def settle(network: nn.Module, points: Tensor) -> None:
    """Gives every normalisation the statistics of a sweep, as training would; otherwise features fade."""
    for module in network.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            module.momentum = 1.0
    network.train()
    network(points)
    network.eval()


def block(channels: int, out: int, layers: int, stride: int) -> nn.Sequential:
    """A convolution with a stride, and `layers` without."""

    def one(channels: int, stride: int) -> list[nn.Module]:
        return [nn.Conv2d(channels, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out), nn.ReLU()]

    parts = one(channels, stride)
    for _ in range(layers):
        parts += one(out, 1)
    return nn.Sequential(*parts)
